import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { headersOf, jsonProblem, METHODS } from "./relay-form.tsx";

const MISSED = [
  ["once", "run once"],
  ["skip", "skip"],
] as const;
const OVERLAP = [
  ["allow", "run anyway"],
  ["skip", "skip"],
] as const;

/** The form of a new schedule. */
export function ScheduleForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [payload, setPayload] = useState("{}");
  const [type, setType] = useState("");
  const problem = jsonProblem(payload);
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <Form
        submit="Create schedule"
        disabled={problem !== null}
        onCancel={onClose}
        onSubmit={async (data) => {
          const made = await call("relay.schedules.create", { body: bodyOf(data, payload) });
          toast("Schedule created");
          onDone();
          go(["relay", "schedules", made.schedule_id]);
        }}
      >
        <TextField
          name="name"
          label="Name"
          placeholder="nightly"
          hint="Optional; unique within the project."
        />
        <div class="two">
          <TextField
            name="cron"
            label="Schedule"
            value="0 9 * * MON-FRI"
            mono
            required
            hint="Minute, hour, day, month, weekday; or @daily and similar."
          />
          <TextField
            name="time_zone"
            label="Time zone"
            value={Intl.DateTimeFormat().resolvedOptions().timeZone}
            required
          />
        </div>
        <div class="two">
          <TextField
            name="target_url"
            label="URL"
            type="url"
            placeholder="https://example.com/hook"
            required={type === ""}
          />
          <TextField
            name="event_type"
            label="Or an event type"
            placeholder="report.due"
            mono
            onInput={setType}
            hint="Sends a message to all endpoints that subscribe to it."
          />
        </div>
        <SelectField name="method" label="Method" value="POST" options={METHODS.map((one) => [one, one])} />
        <TextField
          name="payload"
          label="Body (JSON)"
          rows={4}
          mono
          value={payload}
          onInput={setPayload}
          hint={problem ?? "Valid JSON."}
        />
        <TextField
          name="headers"
          label="Headers"
          rows={2}
          mono
          placeholder="X-Shop: 42"
          hint="One per line."
        />
        <div class="two">
          <SelectField
            name="missed"
            label="Runs missed while the server is down"
            value="once"
            options={MISSED}
          />
          <SelectField
            name="overlap"
            label="While the previous run is in progress"
            value="allow"
            options={OVERLAP}
          />
        </div>
      </Form>
    </Dialog>
  );
}

function bodyOf(data: FormData, payload: string) {
  const [name, target_url, event_type] = ["name", "target_url", "event_type"].map((one) => textOf(data, one));
  return {
    ...(name === undefined ? {} : { name }),
    cron: textOf(data, "cron") ?? "",
    time_zone: textOf(data, "time_zone") ?? "UTC",
    ...(target_url === undefined ? {} : { target_url }),
    ...(event_type === undefined ? {} : { event_type }),
    method: METHODS.find((one) => one === data.get("method")) ?? "POST",
    payload: JSON.parse(payload.trim() === "" ? "{}" : payload) as object,
    headers: headersOf(textOf(data, "headers") ?? ""),
    missed: data.get("missed") === "skip" ? "skip" : "once",
    overlap: data.get("overlap") === "skip" ? "skip" : "allow",
  } as const;
}
