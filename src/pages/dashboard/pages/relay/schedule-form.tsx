import { useState } from "preact/hooks";
import { call } from "../../core/api.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { headersOf, jsonProblem, METHODS } from "./relay-form.tsx";

const MISSED = [
  ["once", "run once afterwards"],
  ["skip", "skip them"],
] as const;
const OVERLAP = [
  ["allow", "run all the same"],
  ["skip", "skip the run"],
] as const;

/** Makes a schedule. */
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
          toast("The schedule is made");
          onDone();
          go(["relay", "schedules", made.schedule_id]);
        }}
      >
        <TextField name="name" label="Name" placeholder="nightly" hint="Unique in the project, or none." />
        <div class="two">
          <TextField
            name="cron"
            label="Times"
            value="0 9 * * MON-FRI"
            mono
            required
            hint="Minute, hour, day, month, weekday; or @daily and the like."
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
            label="Where to"
            type="url"
            placeholder="https://example.com/hook"
            required={type === ""}
          />
          <TextField
            name="event_type"
            label="Or a message's type"
            placeholder="report.due"
            mono
            onInput={setType}
            hint="Goes to all endpoints that take it."
          />
        </div>
        <SelectField name="method" label="Method" value="POST" options={METHODS.map((one) => [one, one])} />
        <TextField
          name="payload"
          label="Body, as JSON"
          rows={4}
          mono
          value={payload}
          onInput={setPayload}
          hint={problem ?? "Read as you type: it is well formed."}
        />
        <TextField name="headers" label="Headers" rows={2} mono placeholder="X-Shop: 42" hint="One a line." />
        <div class="two">
          <SelectField name="missed" label="Times missed while it is down" value="once" options={MISSED} />
          <SelectField name="overlap" label="While the last run goes on" value="allow" options={OVERLAP} />
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
