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
import { DateTime } from "../../ui/time.tsx";
import { MaintenanceForm } from "./maintenance-form.tsx";
import { MonitorViews } from "./monitor-views.tsx";

const EXAMPLE = {
  title: "Move to a larger machine",
  starts_at: "2030-01-31T22:00:00Z",
  ends_at: "2030-01-31T23:00:00Z",
};

/** Maintenance windows, in which alerts are suppressed. */
export function MaintenancePage() {
  const { query } = place.value;
  const [deleting, setDeleting] = useState<Maintenance | null>(null);
  const list = useList("maintenance", ["pulse"], async (page, signal) => {
    const { maintenance, cursor = null } = await call("monitors.maintenance.list", { query: page }, signal);
    return { items: maintenance, cursor };
  });
  return (
    <Page
      title="Maintenance windows"
      request={requestOf("monitors.maintenance.list", {})}
      actions={
        <Button kind="primary" icon="new" scope="pulse:write" onClick={() => setQuery({ new: "1" })}>
          New window
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
                title="No maintenance windows"
                request={requestOf("monitors.maintenance.create", { body: EXAMPLE })}
              >
                During a maintenance window its monitors are still checked, but send no alerts.
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
      label="Maintenance windows"
      rows={props.of}
      keyOf={({ id }) => id}
      columns={[
        {
          head: "Window",
          cell: (one) => (
            <>
              {one.title}
              <span class="sub">{whenOf(one)}</span>
            </>
          ),
        },
        { head: "Start", cell: ({ starts_at }) => <DateTime at={starts_at} />, layout: "wide" },
        { head: "End", cell: ({ ends_at }) => <DateTime at={ends_at} />, layout: "wide" },
        { head: "Monitors", cell: ({ monitor_ids }) => count(monitor_ids.length, "monitor"), layout: "wide" },
        { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
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
          layout: "fit",
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
      action="Delete window"
      onClose={props.onClose}
      onConfirm={async () => {
        await call("monitors.maintenance.delete", { params: { maintenance_id: id } });
        props.onDone();
        props.onClose();
      }}
    >
      <p>
        {status === "active"
          ? "The window ends now: alerts for targets that are down are sent immediately."
          : "Its monitors send alerts as usual."}
      </p>
    </Confirm>
  );
}
