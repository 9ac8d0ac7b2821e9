import { useState } from "preact/hooks";
import type { Bucket, BucketUpdateBody } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";

const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] as const;
const MODES = [
  ["mark", "kept, never sent on"],
  ["reject", "not kept"],
] as const;
const INVALID = [
  ["200", "200"],
  ["400", "400"],
  ["401", "401"],
  ["403", "403"],
] as const;
const OVERLOAD = [
  ["200", "200: it is lost"],
  ["429", "429: the sender may try again"],
  ["503", "503: the sender may try again"],
] as const;
const TYPES = ["text/plain", "application/json", "application/xml", "text/xml"].map(
  (type) => [type, type] as const,
);
const HOUR_MS = 3_600_000;

/** What a bucket takes in, keeps, and answers. */
export function BucketSettings({
  of: bucket,
  onDone,
  onClose,
}: {
  of: Bucket;
  onDone: () => void;
  onClose: () => void;
}) {
  // Kept here: an event that comes in meanwhile draws the page anew.
  const [methods, setMethods] = useState<Bucket["methods"]>(bucket.methods);
  const submit = async (data: FormData): Promise<void> => {
    await call("catch.buckets.update", { params: { bucket_id: bucket.id }, body: changesIn(data, bucket) });
    toast("The bucket is changed");
    onDone();
    onClose();
  };
  return (
    <Dialog title={`Settings of ${bucket.name ?? bucket.id}`} onClose={onClose}>
      <Form submit="Save" onCancel={onClose} onSubmit={submit}>
        <fieldset class="checks">
          <legend>Methods that are kept</legend>
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
        <Answers of={bucket} />
      </Form>
    </Dialog>
  );
}

/** What becomes of signatures that do not hold, and which secrets do. */
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
          label="are answered"
          value={String(bucket.invalid_status)}
          options={INVALID}
        />
      </div>
      <div class="two">
        <TextField
          name="previous"
          label="Secret before this one"
          type="password"
          mono
          hint={
            bucket.previous_expires_at === null ? undefined : `One holds until ${bucket.previous_expires_at}.`
          }
        />
        <TextField name="previous_hours" label="holds for hours" type="number" min={1} max={720} value="24" />
      </div>
    </>
  );
}

/** How long events are kept, and what is answered. */
function Answers({ of: bucket }: { of: Bucket }) {
  const { response } = bucket;
  return (
    <>
      <SelectField
        name="overload"
        label="What there is no room for is answered"
        value={String(bucket.overload_status)}
        options={OVERLOAD}
      />
      <div class="two">
        <TextField
          name="deduplicate"
          label="Notice repeats for hours"
          type="number"
          min={0}
          max={168}
          value={String(bucket.deduplicate_hours)}
        />
        <TextField
          name="retention"
          label="Keep events for hours"
          type="number"
          min={1}
          value={bucket.retention_hours === null ? undefined : String(bucket.retention_hours)}
          hint="Empty: as long as the tier has it."
        />
      </div>
      <div class="two">
        <TextField
          name="status"
          label="Answer with status"
          type="number"
          min={200}
          max={299}
          value={response === null ? undefined : String(response.status ?? 200)}
          hint="Empty: our JSON."
        />
        <SelectField
          name="type"
          label="of type"
          value={response?.content_type ?? "text/plain"}
          options={TYPES}
        />
      </div>
      <TextField name="body" label="and body" rows={2} mono value={response?.body ?? undefined} />
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
