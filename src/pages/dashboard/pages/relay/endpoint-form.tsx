import { useState } from "preact/hooks";
import type { RelayEndpointItem, RelaySecretRotated } from "../../../../client/generated/api.ts";
import { go } from "../../core/route.ts";
import type { RowOf } from "../../ui/data-form.tsx";
import { DataForm } from "../../ui/form.tsx";
import { HOURS, MILLISECONDS, RETRIES, SECRET } from "../../ui/kinds.ts";
import { DateTime } from "../../ui/time.tsx";
import { Secret } from "../keys/secret.tsx";

/** Shown instead of a header's stored value. */
const HIDDEN = "[secret]";
const FORMATS = [
  ["envelope", "object with type, timestamp and data"],
  ["raw", "payload only"],
] as const;
const DEFAULTS = { format: "envelope", notify_email: true, keep_responses: true, state: "live" };

interface EndpointFormProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Creates an endpoint and shows its secret once. */
export function NewEndpoint({ onClose, onDone }: EndpointFormProps) {
  const [created, setCreated] = useState<{ endpoint_id: string; secret: string } | null>(null);
  if (created !== null) {
    const close = () => {
      onDone();
      go(["relay", "endpoints", created.endpoint_id]);
    };
    return <Secret title="The endpoint's signing secret" secret={created.secret} onSaved={close} />;
  }
  return (
    <DataForm
      title="New endpoint"
      submit="Create endpoint"
      operation="relay.endpoints.create"
      start={DEFAULTS}
      fields={fieldsOf(true)}
      onDone={setCreated}
      onClose={onClose}
    />
  );
}

/** Edits an endpoint. `of`: its state when the form was opened. */
export function EditEndpoint({ of, onClose, onDone }: EndpointFormProps & { of: RelayEndpointItem }) {
  return (
    <DataForm
      title={`Settings of ${of.name ?? of.endpoint_id}`}
      submit="Save"
      operation="relay.endpoints.change"
      params={{ endpoint_id: of.endpoint_id }}
      of={of}
      fields={fieldsOf(false) as readonly RowOf<"relay.endpoints.change">[]}
      adapt={withoutHidden}
      done="Endpoint updated"
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** Replaces an endpoint's secret and shows the new one once. */
export function RotateSecret({ of, onClose }: { of: RelayEndpointItem; onClose: () => void }) {
  const [rotated, setRotated] = useState<RelaySecretRotated | null>(null);
  if (rotated !== null)
    return (
      <Secret title="The endpoint's new signing secret" secret={rotated.secret} onSaved={onClose}>
        <p>
          Deliveries are signed with both secrets until <DateTime at={rotated.previous_expires_at} />.
        </p>
      </Secret>
    );
  return (
    <DataForm
      title={`Rotate the secret of ${of.name ?? of.endpoint_id}`}
      submit="Rotate secret"
      operation="relay.endpoints.secret.rotate"
      params={{ endpoint_id: of.endpoint_id }}
      start={{ grace_hours: 24 }}
      fields={[
        {
          name: "grace_hours",
          label: "Sign with both secrets for (hours)",
          hint: "0 to 168. Update the receiver in this time.",
        },
        { name: "secret", label: "New secret", kind: SECRET, hint: "whsec_… Leave empty to generate one." },
      ]}
      onDone={setRotated}
      onClose={onClose}
    />
  );
}

/** @throws Error for a changed header list with hidden values, which would replace the stored ones */
function withoutHidden(body: Record<string, unknown>): object {
  const covered = Object.entries(body["headers"] ?? {}).find(([, value]) => value === HIDDEN);
  if (covered === undefined) return body;
  throw new Error(`Enter the value of the header ${covered[0]} again: ${HIDDEN} is a placeholder.`);
}

function fieldsOf(isNew: boolean): readonly RowOf<"relay.endpoints.create" | "relay.endpoints.change">[] {
  return [
    { name: "url", hint: "" },
    { name: "name", placeholder: "" },
    {
      name: "event_types",
      placeholder: "invoice.*, order.paid",
      hint: "Separated by commas. Leave empty for all.",
    },
    {
      more: [
        isNew
          ? {
              name: "owner_id",
              label: "Owner",
              mono: true,
              placeholder: "acme",
              hint: "Your id of the customer it belongs to: it receives only messages to this customer. It cannot be changed.",
            }
          : null,
        { name: "channels", placeholder: "eu, us", hint: "Separated by commas. Leave empty for all." },
        {
          name: "filter",
          label: "Filter, as JSON",
          rows: 3,
          placeholder: '{ "amount": { "$gte": 100 } }',
          hint: "Condition for payloads. Leave empty for all.",
        },
        { name: "format", label: "Body", options: FORMATS, hint: "" },
        {
          name: "headers",
          hint: `One per line. If you change one, enter the values shown as ${HIDDEN} again.`,
        },
        { name: "retry_schedule", placeholder: "5s, 5m, 2h", hint: RETRIES.hint },
        [
          { name: "timeout_ms", label: "Timeout", kind: MILLISECONDS, required: false, hint: "" },
          { name: "max_concurrency", label: "Concurrent attempts", required: false, hint: "" },
          { name: "max_per_second", label: "Attempts per second", hint: "Leave empty for no limit." },
          {
            name: "disable_after_hours",
            label: "Disable after failing for",
            kind: HOURS,
            required: false,
            hint: "0: never.",
          },
        ],
        [
          {
            name: "order_by",
            label: "Order by",
            mono: true,
            placeholder: "/customer/id",
            hint: "JSON pointer into the payload: messages with the same value are sent one after another.",
          },
          {
            name: "order_wait_ms",
            label: "A failing one holds the others for",
            kind: MILLISECONDS,
            required: false,
            hint: "",
          },
        ],
        { name: "notify_email", label: "Send e-mail when it is disabled" },
        { name: "keep_responses", label: "Store responses" },
        { name: "description", placeholder: "", hint: "" },
        isNew
          ? [
              { name: "state", label: "Initial state", hint: "" },
              {
                name: "secret",
                label: "Signing secret",
                kind: SECRET,
                hint: "whsec_… Leave empty to generate one.",
              },
            ]
          : null,
      ],
    },
  ];
}
