import { useState } from "preact/hooks";
import type { Maintenance } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, span } from "../../core/format.ts";
import { useList } from "../../core/resource.ts";
import { place, setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { Empty, Loaded, More } from "../../ui/feedback.tsx";
import { Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { Table } from "../../ui/table.tsx";
import { Moment } from "../../ui/time.tsx";
import { MaintenanceForm } from "./maintenance-form.tsx";
import { MonitorViews } from "./monitor-views.tsx";

const EXAMPLE = {
  title: "Move to a larger machine",
  starts_at: "2030-01-31T22:00:00Z",
  ends_at: "2030-01-31T23:00:00Z",
};

/** Planned work: windows in which failures tell nobody. */
export function MaintenancePage() {
  const { query } = place.value;
  const [deleting, setDeleting] = useState<Maintenance | null>(null);
  const list = useList("maintenance", ["pulse"], async (page, signal) => {
    const { maintenance, cursor = null } = await call("monitors.maintenance.list", { query: page }, signal);
    return { items: maintenance, cursor };
  });
  return (
    <Page
      title="Planned work"
      request={requestOf("monitors.maintenance.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
          Plan work
        </Button>
      }
    >
      <MonitorViews view="maintenance" />
      <Panel flush>
        <Loaded of={list}>
          {(all) =>
            all.length === 0 ? (
              <Empty
                icon="monitors"
                title="No work is planned"
                request={requestOf("monitors.maintenance.create", { body: EXAMPLE })}
              >
                While planned work is under way, its monitors are checked on, and tell nobody.
              </Empty>
            ) : (
              <>
                <MaintenanceTable of={all} onDelete={setDeleting} />
                <More of={list} />
              </>
            )
          }
        </Loaded>
      </Panel>
      {query.has("new") ? (
        <MaintenanceForm onClose={() => setQuery({ new: undefined })} onDone={list.reload} />
      ) : null}
      {deleting === null ? null : (
        <DeleteMaintenance of={deleting} onClose={() => setDeleting(null)} onDone={list.reload} />
      )}
    </Page>
  );
}

function MaintenanceTable(props: { of: readonly Maintenance[]; onDelete: (one: Maintenance) => void }) {
  return (
    <Table
      label="Planned work"
      rows={props.of}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Work",
          cell: (one) => (
            <>
              {one.title}
              <span class="sub">{whenOf(one)}</span>
            </>
          ),
        },
        { head: "From", cell: ({ starts_at }) => <Moment at={starts_at} />, look: "wide" },
        { head: "Until", cell: ({ ends_at }) => <Moment at={ends_at} />, look: "wide" },
        { head: "For", cell: ({ monitor_ids }) => count(monitor_ids.length, "monitor"), look: "wide" },
        { head: "State", cell: ({ status }) => <Status state={status} />, look: "fit" },
        {
          head: "Delete",
          cell: (one) => (
            <Button
              kind="danger"
              icon="delete"
              scope="pulse:write"
              label={`Delete ${one.title}`}
              onClick={() => props.onDelete(one)}
            >
              {null}
            </Button>
          ),
          look: "fit",
        },
      ]}
    />
  );
}

function whenOf({ schedule, tz, duration_ms, message }: Maintenance): string {
  if (schedule === null) return message;
  return `${schedule}, ${tz}, for ${span(duration_ms ?? 0)}`;
}

function DeleteMaintenance(props: { of: Maintenance; onClose: () => void; onDone: () => void }) {
  const { id, title, status } = props.of;
  return (
    <Confirm
      title={`Delete ${title}?`}
      deed="Delete planned work"
      onClose={props.onClose}
      onConfirm={async () => {
        await call("monitors.maintenance.delete", { params: { maintenance_id: id } });
        props.onDone();
        props.onClose();
      }}
    >
      <p>
        {status === "active"
          ? "It ends now: what is down is told of at once."
          : "Its monitors tell of failures as ever."}
      </p>
    </Confirm>
  );
}
