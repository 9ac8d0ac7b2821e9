import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type {
  RelayEndpointCreated,
  RelayEndpointItem,
  RelayEndpointSecretRotated,
} from "../../../../client/generated/api.ts";
import { go } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";
import type { RowOf } from "../../ui/data-form.tsx";
import { Dialog } from "../../ui/dialog.tsx";
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
const SECRET_HINT = "whsec_…, or as the signature needs it. Leave empty to generate one.";
const DEFAULTS = { format: "envelope", notify_email: true, keep_responses: true, state: "live" };

interface EndpointFormProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Creates an endpoint and shows its secret once. */
export function NewEndpoint({ onClose, onDone }: EndpointFormProps) {
  const [created, setCreated] = useState<RelayEndpointCreated | null>(null);
  if (created !== null) {
    const close = () => {
      onDone();
      go(["relay", "endpoints", created.endpoint_id]);
    };
    return <SigningKey title="The endpoint's signing secret" of={created} onSaved={close} />;
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
  const [rotated, setRotated] = useState<RelayEndpointSecretRotated | null>(null);
  if (rotated !== null)
    return (
      <SigningKey title="The endpoint's new signing secret" of={rotated} onSaved={onClose}>
        <p>
          {signsTwice(of) ? "Deliveries are signed with both secrets" : "The old secret is valid"} until{" "}
          <DateTime at={rotated.previous_expires_at} />.
        </p>
      </SigningKey>
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
        { name: "secret", label: "New secret", kind: SECRET, hint: SECRET_HINT },
      ]}
      onDone={setRotated}
      onClose={onClose}
    />
  );
}

/** Whether messages have a signature by each valid secret: of HMACs, receivers read one. */
function signsTwice({ signature }: RelayEndpointItem): boolean {
  return signature?.header === undefined || signature.scheme === "stripe";
}

/** Shows a new secret once; of a key pair, the public key, which receivers need. */
function SigningKey(props: {
  title: string;
  of: Pick<RelayEndpointCreated, "secret" | "public_key">;
  onSaved: () => void;
  children?: ComponentChildren;
}) {
  const { title, of, onSaved, children } = props;
  if (of.secret !== undefined)
    return (
      <Secret title={title} secret={of.secret} onSaved={onSaved}>
        {children}
      </Secret>
    );
  return (
    <Dialog title="The endpoint's public key" onClose={onSaved}>
      <p>Receivers verify the messages with it. The page of the endpoint shows it at any time.</p>
      {children}
      <pre>{of.public_key}</pre>
      <div class="actions">
        <Button kind="primary" onClick={onSaved}>
          Close
        </Button>
      </div>
    </Dialog>
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
        {
          name: "template",
          label: "Body template, as JSON",
          rows: 3,
          placeholder: '{ "text": { "$": "/data/message" } }',
          hint: "References are JSON pointers into {id, type, timestamp, data}. Replaces the body above.",
        },
        {
          name: "signature",
          label: "Signature, as JSON",
          rows: 2,
          placeholder: '{ "scheme": "hmac-sha256-hex", "header": "X-Signature" }',
          hint: "standard, hmac-sha256-hex, hmac-sha256-base64, stripe or ed25519. Leave empty for Standard Webhooks.",
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
              { name: "secret", label: "Signing secret", kind: SECRET, hint: SECRET_HINT },
            ]
          : {
              name: "secret",
              label: "New signing secret",
              kind: SECRET,
              hint: "Only if it changes, or a new signature needs another one.",
            },
      ],
    },
  ];
}
