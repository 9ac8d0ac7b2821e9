import { useState } from "preact/hooks";
import type { RelayEndpointItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Secret } from "../keys/secret.tsx";
import { COVERED, changesOf, NO_RETRIES, termsOf } from "./endpoint-terms.ts";

const FORMATS = [
  ["envelope", "an object of type, timestamp and data"],
  ["raw", "the payload alone"],
] as const;
const STATES = [
  ["live", "live"],
  ["paused", "paused"],
] as const;
const CHOICES = [
  ["notify_email", "E-mail when it is disabled"],
  ["keep_responses", "Keep what it answers"],
] as const;
const YES_NO = [
  ["yes", "yes"],
  ["no", "no"],
] as const;
const FIGURES = [
  ["timeout_ms", "Milliseconds an attempt may take"],
  ["max_concurrency", "Attempts at once"],
  ["max_per_second", "Attempts in a second", "Empty: no bound."],
  ["disable_after_hours", "Disabled after hours of failures", "0: never."],
] as const;
/** Makes an endpoint, and shows its secret, this once. */
export function NewEndpoint({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [made, setMade] = useState<{ id: string; secret: string } | null>(null);
  if (made !== null) {
    const kept = () => {
      onDone();
      go(["relay", "endpoints", made.id]);
    };
    return <Secret title="The endpoint's signing secret" secret={made.secret} onKept={kept} />;
  }
  const submit = async (data: FormData): Promise<void> => {
    const state = data.get("state") === "paused" ? "paused" : "live";
    const body = { ...termsOf(data), state, secret: textOf(data, "secret") } as const;
    const { endpoint_id, secret } = await call("relay.endpoints.create", { body });
    setMade({ id: endpoint_id, secret });
  };
  return (
    <Dialog title="New endpoint" onClose={onClose}>
      <Form submit="Create endpoint" onCancel={onClose} onSubmit={submit}>
        <Fields />
      </Form>
    </Dialog>
  );
}

/** Changes an endpoint: `of` is what it was when the form was opened. */
export function EditEndpoint(props: { of: RelayEndpointItem; onClose: () => void; onDone: () => void }) {
  const { of: before, onClose, onDone } = props;
  const { name, endpoint_id } = before;
  const submit = async (data: FormData): Promise<void> => {
    await call("relay.endpoints.change", { params: { endpoint_id }, body: changesOf(data, before) });
    toast("The endpoint is changed");
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Settings of ${name ?? endpoint_id}`} onClose={onClose}>
      <Form submit="Save" onCancel={onClose} onSubmit={submit}>
        <Fields of={before} />
      </Form>
    </Dialog>
  );
}

/** What an endpoint has; `of` is missing for a new one. */
function Fields({ of }: { of?: RelayEndpointItem }) {
  return (
    <>
      <TextField
        name="url"
        label="Where to"
        type="url"
        placeholder="https://example.com/hooks"
        value={of?.url}
        required
      />
      <TextField
        name="name"
        label="Name"
        value={of?.name ?? undefined}
        hint="One of its kind in the project, or none."
      />
      <TextField
        name="event_types"
        label="Types of messages"
        placeholder="invoice.*, order.paid"
        value={of?.event_types.join(", ")}
        hint="With commas between them; all unless entered."
      />
      {/* What is wrong in there must be seen. */}
      <details
        onInvalidCapture={(event) => {
          event.currentTarget.open = true;
        }}
      >
        <summary>More</summary>
        <div class="stack">
          <Contents of={of} />
          <Sending of={of} />
          <Others of={of} />
        </div>
      </details>
    </>
  );
}

interface PartProps {
  readonly of: RelayEndpointItem | undefined;
}

/** Which messages it gets, and what is sent of them. */
function Contents({ of }: PartProps) {
  return (
    <>
      <TextField
        name="channels"
        label="Channels"
        placeholder="eu, us"
        value={of?.channels.join(", ")}
        hint="With commas between them; all unless entered."
      />
      <TextField
        name="filter"
        label="Filter, as JSON"
        rows={3}
        mono
        placeholder={'{ "amount": { "$gte": 100 } }'}
        value={of?.filter == null ? undefined : JSON.stringify(of.filter, null, 2)}
        hint="What a payload has to be; anything unless entered."
      />
      <SelectField name="format" label="Body" value={of?.format ?? "envelope"} options={FORMATS} />
      <TextField
        name="headers"
        label="Headers"
        rows={2}
        mono
        placeholder="X-Shop: 42"
        value={of === undefined ? undefined : linesOf(of.headers)}
        hint={`One a line. Where you change any, enter anew what is shown as ${COVERED}.`}
      />
    </>
  );
}

/** How it is sent, and how often. */
function Sending({ of }: PartProps) {
  const waits = of?.retry_schedule.join(", ");
  return (
    <>
      <TextField
        name="retry_schedule"
        label="Waits before retries"
        placeholder="5s, 5m, 2h"
        value={waits === "" ? NO_RETRIES : waits}
        hint={`With commas between them; ${NO_RETRIES}: it is tried once.`}
      />
      <div class="two">
        {FIGURES.map(([name, label, hint]) => (
          <TextField
            key={name}
            name={name}
            label={label}
            type="number"
            value={of === undefined || of[name] === null ? undefined : String(of[name])}
            hint={hint}
          />
        ))}
      </div>
    </>
  );
}

/** What else there is, and what only a new one is given. */
function Others({ of }: PartProps) {
  return (
    <>
      <div class="two">
        {CHOICES.map(([name, label]) => (
          <SelectField
            key={name}
            name={name}
            label={label}
            value={of?.[name] === false ? "no" : "yes"}
            options={YES_NO}
          />
        ))}
      </div>
      <TextField name="description" label="Description" value={of?.description ?? undefined} />
      {of === undefined ? (
        <div class="two">
          <SelectField name="state" label="Begins" value="live" options={STATES} />
          <TextField
            name="secret"
            label="Signing secret"
            type="password"
            mono
            hint="whsec_…; a new one unless entered."
          />
        </div>
      ) : null}
    </>
  );
}

function linesOf(headers: Record<string, string>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}
