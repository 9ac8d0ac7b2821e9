import type { Maintenance } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { count, span } from "../../core/format.ts";
import { useList } from "../../core/lists.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm, openDialog } from "../../ui/dialog.tsx";
import { ListPage } from "../../ui/list.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { DateTime } from "../../ui/time.tsx";
import { MaintenanceForm } from "./maintenance-form.tsx";

const EXAMPLE = {
  title: "Move to a larger machine",
  starts_at: "2030-01-31T22:00:00Z",
  ends_at: "2030-01-31T23:00:00Z",
};

/** Maintenance windows, in which alerts are suppressed. */
export function MaintenancePage() {
  const list = useList("monitors.maintenance.list", "maintenance", ["pulse"], { keyOf: ({ id }) => id });
  return (
    <ListPage
      title="Maintenance windows"
      label="Maintenance windows"
      request={requestOf("monitors.maintenance.list", {})}
      create={["New window", "monitors.maintenance.create"]}
      list={list}
      none={{
        icon: "monitors",
        title: "No maintenance windows",
        request: requestOf("monitors.maintenance.create", { body: EXAMPLE }),
        text: "During a maintenance window its monitors are still checked, but send no alerts.",
      }}
      columns={columnsOf(list.reload)}
      form={(close) => <MaintenanceForm onClose={close} onDone={list.reload} />}
    />
  );
}

function columnsOf(onChanged: () => void): readonly Column<Maintenance>[] {
  return [
    {
      head: "Window",
      cell: ({ title }) => title,
      sub: whenOf,
    },
    { head: "Start", cell: ({ starts_at }) => <DateTime at={starts_at} />, layout: "wide" },
    { head: "End", cell: ({ ends_at }) => <DateTime at={ends_at} />, layout: "wide" },
    { head: "Monitors", cell: ({ monitor_ids }) => count(monitor_ids.length, "monitor"), layout: "wide" },
    { head: "State", cell: ({ status }) => <Status state={status} />, layout: "fit" },
    {
      head: "Actions",
      width: 10,
      cell: (planned) => (
        <div class="actions">
          <Button
            operation="monitors.maintenance.update"
            label={`Edit ${planned.title}`}
            onClick={() =>
              openDialog((close) => <MaintenanceForm of={planned} onClose={close} onDone={onChanged} />)
            }
          >
            Edit…
          </Button>
          <Button
            kind="danger"
            icon="delete"
            operation="monitors.maintenance.delete"
            label={`Delete ${planned.title}`}
            onClick={() => deleteMaintenance(planned, onChanged)}
          />
        </div>
      ),
      layout: "fit",
    },
  ];
}

function whenOf({ schedule, tz, duration_ms, message }: Maintenance): string {
  if (schedule === null) return message;
  return `${schedule}, ${tz}, for ${span(duration_ms ?? 0)}`;
}

function deleteMaintenance({ id, title, status }: Maintenance, onDone: () => void): void {
  openDialog((close) => (
    <Confirm
      title={`Delete ${title}?`}
      action="Delete window"
      onConfirm={() => call("monitors.maintenance.delete", { params: { maintenance_id: id } }).then(onDone)}
      onClose={close}
    >
      <p>
        {status === "active"
          ? "The window ends now: alerts for targets that are down are sent immediately."
          : "Its monitors send alerts as usual."}
      </p>
    </Confirm>
  ));
}
