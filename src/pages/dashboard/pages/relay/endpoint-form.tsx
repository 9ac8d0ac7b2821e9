import { useState } from "preact/hooks";
import type { RelayEndpointItem } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { NO_RETRIES, retryText } from "../../core/retries.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Secret } from "../keys/secret.tsx";
import { changesOf, fieldsOf, HIDDEN } from "./endpoint-fields.ts";

const FORMATS = [
  ["envelope", "object with type, timestamp and data"],
  ["raw", "payload only"],
] as const;
const STATES = [
  ["live", "live"],
  ["paused", "paused"],
] as const;
const CHOICES = [
  ["notify_email", "Send e-mail when it is disabled"],
  ["keep_responses", "Store responses"],
] as const;
const YES_NO = [
  ["yes", "yes"],
  ["no", "no"],
] as const;
const FIGURES = [
  ["timeout_ms", "Timeout (milliseconds)"],
  ["max_concurrency", "Concurrent attempts"],
  ["max_per_second", "Attempts per second", "Leave empty for no limit."],
  ["disable_after_hours", "Disable after failing for (hours)", "0: never."],
] as const;
/** Creates an endpoint and shows its secret once. */
export function NewEndpoint({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [created, setCreated] = useState<{ id: string; secret: string } | null>(null);
  if (created !== null) {
    const close = () => {
      onDone();
      go(["relay", "endpoints", created.id]);
    };
    return <Secret title="The endpoint's signing secret" secret={created.secret} onSaved={close} />;
  }
  const submit = async (data: FormData): Promise<void> => {
    const state = data.get("state") === "paused" ? "paused" : "live";
    const body = { ...fieldsOf(data), state, secret: textOf(data, "secret") } as const;
    const { endpoint_id, secret } = await call("relay.endpoints.create", { body });
    setCreated({ id: endpoint_id, secret });
  };
  return (
    <Dialog title="New endpoint" onClose={onClose}>
      <Form submit="Create endpoint" onCancel={onClose} onSubmit={submit}>
        <Fields />
      </Form>
    </Dialog>
  );
}

/** Edits an endpoint. `of`: its state when the form was opened. */
export function EditEndpoint(props: { of: RelayEndpointItem; onClose: () => void; onDone: () => void }) {
  const { of: before, onClose, onDone } = props;
  const { name, endpoint_id } = before;
  const submit = async (data: FormData): Promise<void> => {
    await call("relay.endpoints.change", { params: { endpoint_id }, body: changesOf(data, before) });
    toast("Endpoint updated");
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

/** The fields of an endpoint; `of` is undefined for a new one. */
function Fields({ of }: { of?: RelayEndpointItem }) {
  return (
    <>
      <TextField
        name="url"
        label="URL"
        type="url"
        placeholder="https://example.com/hooks"
        value={of?.url}
        required
      />
      <TextField
        name="name"
        label="Name"
        value={of?.name ?? undefined}
        hint="Optional; unique within the project."
      />
      <TextField
        name="event_types"
        label="Event types"
        placeholder="invoice.*, order.paid"
        value={of?.event_types.join(", ")}
        hint="Separated by commas. Leave empty for all."
      />
      {/* Opened when a field inside is invalid. */}
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

/** The messages that the endpoint receives, and the format of the request. */
function Contents({ of }: PartProps) {
  return (
    <>
      <TextField
        name="channels"
        label="Channels"
        placeholder="eu, us"
        value={of?.channels.join(", ")}
        hint="Separated by commas. Leave empty for all."
      />
      <TextField
        name="filter"
        label="Filter, as JSON"
        rows={3}
        mono
        placeholder={'{ "amount": { "$gte": 100 } }'}
        value={of?.filter == null ? undefined : JSON.stringify(of.filter, null, 2)}
        hint="Condition for payloads. Leave empty for all."
      />
      <SelectField name="format" label="Body" value={of?.format ?? "envelope"} options={FORMATS} />
      <TextField
        name="headers"
        label="Headers"
        rows={2}
        mono
        placeholder="X-Shop: 42"
        value={of === undefined ? undefined : linesOf(of.headers)}
        hint={`One per line. If you change one, enter the values shown as ${HIDDEN} again.`}
      />
    </>
  );
}

/** Retries, timeouts and rates. */
function Sending({ of }: PartProps) {
  return (
    <>
      <TextField
        name="retry_schedule"
        label="Retry schedule"
        placeholder="5s, 5m, 2h"
        value={retryText(of?.retry_schedule)}
        hint={`Delays separated by commas; ${NO_RETRIES} for no retries.`}
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

/** Other settings, and those that only a new endpoint has. */
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
          <SelectField name="state" label="Initial state" value="live" options={STATES} />
          <TextField
            name="secret"
            label="Signing secret"
            type="password"
            mono
            hint="whsec_… Leave empty to generate one."
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
