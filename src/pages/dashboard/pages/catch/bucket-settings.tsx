import { useState } from "preact/hooks";
import type { Bucket, BucketUpdateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { NO_RETRIES, retriesIn, retryText } from "../../core/retries.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";

const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] as const;
const MODES = [
  ["mark", "stored, not forwarded"],
  ["reject", "rejected"],
] as const;
const INVALID = [
  ["200", "200"],
  ["400", "400"],
  ["401", "401"],
  ["403", "403"],
] as const;
const OVERLOAD = [
  ["200", "200: the event is lost"],
  ["429", "429: the sender can retry"],
  ["503", "503: the sender can retry"],
] as const;
const TYPES = ["text/plain", "application/json", "application/xml", "text/xml"].map(
  (type) => [type, type] as const,
);
const HOUR_MS = 3_600_000;

/** A bucket's settings: accepted requests, retention and responses. */
export function BucketSettings({
  of: bucket,
  onDone,
  onClose,
}: {
  of: Bucket;
  onDone: () => void;
  onClose: () => void;
}) {
  // Form state: an incoming event re-renders the page.
  const [methods, setMethods] = useState<Bucket["methods"]>(bucket.methods);
  const submit = async (data: FormData): Promise<void> => {
    await call("catch.buckets.update", { params: { bucket_id: bucket.id }, body: changesIn(data, bucket) });
    toast("Bucket updated");
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Settings of ${bucket.name ?? bucket.id}`} onClose={onClose}>
      <Form submit="Save" onCancel={onClose} onSubmit={submit}>
        <fieldset class="checks">
          <legend>Accepted methods</legend>
          {METHODS.map((method) => (
            <CheckField
              key={method}
              name={method}
              label={method}
              checked={methods.includes(method)}
              onChange={(on) =>
                setMethods(METHODS.filter((one) => (one === method ? on : methods.includes(one))))
              }
            />
          ))}
        </fieldset>
        <Signatures of={bucket} />
        <Retention of={bucket} />
      </Form>
    </Dialog>
  );
}

/** Handling of invalid signatures, and the signing secrets. */
function Signatures({ of: bucket }: { of: Bucket }) {
  return (
    <>
      <div class="two">
        <SelectField
          name="mode"
          label="Invalid signatures"
          value={bucket.verification_mode}
          options={MODES}
        />
        <SelectField
          name="invalid"
          label="Response to them"
          value={String(bucket.invalid_status)}
          options={INVALID}
        />
      </div>
      <div class="two">
        <TextField
          name="previous"
          label="Previous secret"
          type="password"
          mono
          hint={
            bucket.previous_expires_at === null
              ? undefined
              : `The previous secret is valid until ${bucket.previous_expires_at}.`
          }
        />
        <TextField
          name="previous_hours"
          label="Valid for (hours)"
          type="number"
          min={1}
          max={720}
          value="24"
        />
      </div>
    </>
  );
}

/** Retention and responses. */
function Retention({ of: bucket }: { of: Bucket }) {
  const { response } = bucket;
  return (
    <>
      <SelectField
        name="overload"
        label="Response when over the limit"
        value={String(bucket.overload_status)}
        options={OVERLOAD}
      />
      <TextField
        name="retry_schedule"
        label="Retry schedule"
        placeholder="1s, 5s, 25s"
        value={retryText(bucket.retry_schedule)}
        hint={`Delays separated by commas; ${NO_RETRIES} for no retries. Leave empty for the default.`}
      />
      <div class="two">
        <TextField
          name="deduplicate"
          label="Deduplication window (hours)"
          type="number"
          min={0}
          max={168}
          value={String(bucket.deduplicate_hours)}
        />
        <TextField
          name="retention"
          label="Retention (hours)"
          type="number"
          min={1}
          value={bucket.retention_hours === null ? undefined : String(bucket.retention_hours)}
          hint="Leave empty for the maximum of the tier."
        />
      </div>
      <div class="two">
        <TextField
          name="status"
          label="Response status"
          type="number"
          min={200}
          max={299}
          value={response === null ? undefined : String(response.status ?? 200)}
          hint="Leave empty for the default JSON response."
        />
        <SelectField
          name="type"
          label="Content type"
          value={response?.content_type ?? "text/plain"}
          options={TYPES}
        />
      </div>
      <TextField name="body" label="Body" rows={2} mono value={response?.body ?? undefined} />
    </>
  );
}

function changesIn(data: FormData, bucket: Bucket): BucketUpdateBody {
  const number = (name: string): number | undefined => {
    const text = textOf(data, name);
    return text === undefined ? undefined : Number(text);
  };
  const previous = textOf(data, "previous");
  const hours = number("previous_hours") ?? 24;
  const status = number("status");
  const type = textOf(data, "type") as NonNullable<Bucket["response"]>["content_type"];
  const invalid = number("invalid") as Bucket["invalid_status"];
  return {
    methods: METHODS.filter((method) => data.get(method) !== null),
    verification_mode: textOf(data, "mode") as Bucket["verification_mode"],
    ...(invalid === bucket.invalid_status ? {} : { invalid_status: invalid }),
    overload_status: number("overload") as Bucket["overload_status"],
    deduplicate_hours: number("deduplicate") ?? 0,
    retention_hours: number("retention") ?? null,
    retry_schedule: retriesIn(textOf(data, "retry_schedule")) ?? null,
    response:
      status === undefined ? null : { status, content_type: type, body: textOf(data, "body") ?? null },
    ...(previous === undefined
      ? {}
      : {
          previous_signing_secret: previous,
          previous_expires_at: new Date(Date.now() + hours * HOUR_MS).toISOString(),
        }),
  };
}
