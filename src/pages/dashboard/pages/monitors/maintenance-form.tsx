import type { Maintenance } from "../../../../client/generated/api.ts";
import { HOUR_MS } from "../../core/format.ts";
import { DataForm } from "../../ui/form.tsx";
import { MINUTES } from "../../ui/kinds.ts";
import { monitorBoxes } from "./monitor-boxes.tsx";

const KINDS = [
  ["once", "Once"],
  ["again", "Recurring"],
] as const;
const MUTED = monitorBoxes("Monitors without alerts in this time");

interface MaintenanceFormProps {
  /** Undefined for a new window. */
  readonly of?: Maintenance;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** The form of a new or existing maintenance window. */
export function MaintenanceForm({ of, onClose, onDone }: MaintenanceFormProps) {
  const isNew = of === undefined;
  return (
    <DataForm
      title={isNew ? "New maintenance window" : `Edit ${of.title}`}
      submit={isNew ? "Create window" : "Save"}
      operation={isNew ? "monitors.maintenance.create" : "monitors.maintenance.update"}
      params={{ maintenance_id: of?.id ?? "" }}
      of={of}
      start={{
        $kind: of?.schedule ? "again" : "once",
        ...(isNew
          ? {
              schedule: "0 3 * * SUN",
              tz: Intl.DateTimeFormat().resolvedOptions().timeZone,
              duration_ms: HOUR_MS,
            }
          : {}),
      }}
      fields={(get) => [
        { name: "title", placeholder: "Move to a larger machine", hint: "" },
        { name: "message", label: "Description", rows: 2, hint: "" },
        isNew ? { name: "$kind", label: "Repeat", options: KINDS } : null,
        ...(get("$kind") === "once"
          ? ([
              [
                { name: "starts_at", label: "Start", required: true, group: "time", hint: "" },
                { name: "ends_at", label: "End", required: true, group: "time", hint: "" },
              ],
            ] as const)
          : ([
              {
                name: "schedule",
                mono: true,
                required: true,
                group: "time",
                hint: "Minute, hour, day, month, weekday; or @daily and similar.",
              },
              [
                { name: "tz", label: "Time zone", required: true, group: "time", hint: "" },
                {
                  name: "duration_ms",
                  label: "Duration",
                  kind: MINUTES,
                  required: true,
                  group: "time",
                  hint: "",
                },
              ],
            ] as const)),
        { name: "monitor_ids", control: MUTED },
        { name: "public", label: "Shown on status pages" },
      ]}
      done={isNew ? "Maintenance window created" : "Maintenance window updated"}
      onDone={() => {
        onDone();
        onClose();
      }}
      onClose={onClose}
    />
  );
}
