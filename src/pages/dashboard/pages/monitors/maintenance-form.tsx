import { useState } from "preact/hooks";
import type { MaintenanceCreateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { useResource } from "../../core/resource.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, Choice, TextField, textOf } from "../../ui/field.tsx";

const KINDS = [
  ["once", "Once"],
  ["again", "Recurring"],
] as const;
type Kind = (typeof KINDS)[number][0];

/** Most monitors of a maintenance window. */
const MONITORS_SHOWN = 100;
const MINUTE_MS = 60_000;

/** The form of a new maintenance window. */
export function MaintenanceForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [kind, setKind] = useState<Kind>("once");
  const [isPublic, setPublic] = useState(false);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  return (
    <Dialog title="New maintenance window" onClose={onClose}>
      <Form
        submit="Create window"
        onCancel={onClose}
        onSubmit={async (data) => {
          const body = { ...bodyOf(data, kind), monitor_ids: [...chosen], public: isPublic };
          await call("monitors.maintenance.create", { body });
          toast("Maintenance window created");
          onDone();
          onClose();
        }}
      >
        <TextField name="title" label="Title" placeholder="Move to a larger machine" required />
        <TextField name="message" label="Description" rows={2} />
        <Choice<Kind> label="Repeat" options={KINDS} value={kind} onChange={setKind} />
        {kind === "once" ? <OnceFields /> : <AgainFields />}
        <MonitorBoxes chosen={chosen} onChange={setChosen} />
        <CheckField label="Shown on status pages" checked={isPublic} onChange={setPublic} />
      </Form>
    </Dialog>
  );
}

function OnceFields() {
  return (
    <div class="two">
      <TextField name="starts_at" label="Start" type="datetime-local" required />
      <TextField name="ends_at" label="End" type="datetime-local" required />
    </div>
  );
}

function AgainFields() {
  return (
    <>
      <TextField
        name="schedule"
        label="Schedule"
        value="0 3 * * SUN"
        mono
        required
        hint="Minute, hour, day, month, weekday; or @daily and similar."
      />
      <div class="two">
        <TextField
          name="tz"
          label="Time zone"
          value={Intl.DateTimeFormat().resolvedOptions().timeZone}
          required
        />
        <TextField
          name="minutes"
          label="Duration (minutes)"
          type="number"
          min={1}
          max={10_080}
          value="60"
          required
        />
      </div>
    </>
  );
}

interface BoxesProps {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

/** The monitors whose alerts are suppressed in the window. */
function MonitorBoxes({ chosen, onChange }: BoxesProps) {
  const list = useResource("monitors to choose", [], (signal) =>
    call("monitors.list", { query: { limit: MONITORS_SHOWN } }, signal),
  );
  const monitors = list.data?.monitors ?? [];
  if (monitors.length === 0) return null;
  return (
    <fieldset class="field">
      <legend>Monitors without alerts in this time</legend>
      {monitors.map(({ monitor_id, name }) => (
        <CheckField
          key={monitor_id}
          label={name}
          checked={chosen.includes(monitor_id)}
          onChange={(is) =>
            onChange(is ? [...chosen, monitor_id] : chosen.filter((one) => one !== monitor_id))
          }
        />
      ))}
    </fieldset>
  );
}

function bodyOf(data: FormData, kind: Kind): MaintenanceCreateBody {
  const about = { title: textOf(data, "title") ?? "", message: textOf(data, "message") ?? "" };
  if (kind === "once")
    return { ...about, starts_at: timestampOf(data, "starts_at"), ends_at: timestampOf(data, "ends_at") };
  return {
    ...about,
    schedule: textOf(data, "schedule") ?? "",
    tz: textOf(data, "tz") ?? "UTC",
    duration_ms: Math.round(Number(textOf(data, "minutes")) * MINUTE_MS),
  };
}

/** A local time as entered in the form, as RFC 3339. */
function timestampOf(data: FormData, name: string): string {
  return new Date(textOf(data, name) ?? "").toISOString();
}
