import type { Bucket } from "../../../../client/generated/api.ts";
import { HOUR_MS } from "../../core/format.ts";
import { serverNow } from "../../core/now.ts";
import { DataForm } from "../../ui/form.tsx";
import { HOURS, RETRIES, SECRET } from "../../ui/kinds.ts";

const MODES = [
  ["mark", "stored, not forwarded"],
  ["reject", "rejected"],
] as const;
const OVERLOAD = [
  ["200", "200: the event is lost"],
  ["429", "429: the sender can retry"],
  ["503", "503: the sender can retry"],
] as const;
const PREVIOUS_HOURS = 24;

/** A bucket's settings: accepted requests, retention and responses. */
export function BucketSettings(props: { of: Bucket; onDone: () => void; onClose: () => void }) {
  const { of: bucket, onDone, onClose } = props;
  return (
    <DataForm
      title={`Settings of ${bucket.name ?? bucket.id}`}
      submit="Save"
      operation="catch.buckets.update"
      params={{ bucket_id: bucket.id }}
      of={bucket}
      start={{ $hours: PREVIOUS_HOURS }}
      fields={[
        { name: "methods", label: "Accepted methods" },
        [
          { name: "verification_mode", label: "Invalid signatures", options: MODES, hint: "" },
          { name: "invalid_status", label: "Response to them", hint: "" },
        ],
        [
          {
            name: "previous_signing_secret",
            label: "Previous secret",
            kind: SECRET,
            hint:
              bucket.previous_expires_at === null
                ? ""
                : `The previous secret is valid until ${bucket.previous_expires_at}.`,
          },
          { name: "$hours", label: "Valid for", kind: HOURS },
        ],
        { name: "overload_status", label: "Response when over the limit", options: OVERLOAD, hint: "" },
        { name: "retry_schedule", hint: RETRIES.hint },
        [
          { name: "deduplicate_hours", label: "Deduplication window", kind: HOURS },
          {
            name: "retention_hours",
            label: "Retention",
            kind: HOURS,
            hint: "Leave empty for the maximum of the tier.",
          },
        ],
        [
          {
            name: "response.status",
            label: "Response status",
            required: false,
            hint: "Leave empty for the default JSON response.",
          },
          { name: "response.content_type", label: "Content type" },
        ],
        { name: "response.body", label: "Body", rows: 2, mono: true },
      ]}
      adapt={(body, get) => ({
        ...body,
        ...("response" in body ? { response: responseOf(body["response"]) } : {}),
        ...("previous_signing_secret" in body
          ? { previous_expires_at: new Date(serverNow() + Number(get("$hours")) * HOUR_MS).toISOString() }
          : {}),
      })}
      done="Bucket updated"
      onDone={onDone}
      onClose={onClose}
    />
  );
}

/** Without a status, the response is the default one. */
function responseOf(entered: unknown): object | null {
  const response = entered as { readonly status?: number };
  return response.status === undefined ? null : response;
}
