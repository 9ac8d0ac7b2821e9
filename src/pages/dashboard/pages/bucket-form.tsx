import type { Bucket } from "../../../client/generated/api.ts";
import { call } from "../core/api.ts";
import { go } from "../core/route.ts";
import { toast } from "../core/toasts.ts";
import { Dialog, Form } from "../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../ui/field.tsx";

const PROVIDERS = [
  ["", "whatever the headers show"],
  ["stripe", "Stripe"],
  ["github", "GitHub"],
  ["shopify", "Shopify"],
  ["svix", "Svix"],
] as const;

interface BucketFormProps {
  /** Undefined for a new one. */
  readonly of?: Bucket;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** Makes a bucket, or changes one. */
export function BucketForm({ of: bucket, onDone, onClose }: BucketFormProps) {
  const submit = async (data: FormData): Promise<void> => {
    const target_url = textOf(data, "target_url") ?? "";
    const name = textOf(data, "name") ?? null;
    const secret = textOf(data, "signing_secret");
    const body = { target_url, name, ...(secret === undefined ? {} : { signing_secret: secret }) };
    if (bucket === undefined) {
      const provider = textOf(data, "provider");
      const made = await call("catch.buckets.create", {
        body: { ...body, ...(provider === undefined ? {} : { provider }) },
      });
      go(["catch", made.id]);
      return;
    }
    await call("catch.buckets.update", { params: { bucket_id: bucket.id }, body });
    toast("The bucket is changed");
    onDone?.();
    onClose();
  };
  return (
    <Dialog
      title={bucket === undefined ? "New bucket" : `Change ${bucket.name ?? bucket.id}`}
      onClose={onClose}
    >
      <Form submit={bucket === undefined ? "Create bucket" : "Save"} onCancel={onClose} onSubmit={submit}>
        <TextField
          name="target_url"
          label="Send events on to"
          type="url"
          value={bucket?.target_url}
          placeholder="https://example.com/webhooks"
          required
        />
        <TextField name="name" label="Name" value={bucket?.name ?? undefined} />
        <div class="two">
          {bucket === undefined ? (
            <SelectField name="provider" label="Provider" value="" options={PROVIDERS} />
          ) : null}
          <TextField
            name="signing_secret"
            label="Signing secret"
            type="password"
            mono
            {...(bucket?.has_signing_secret === true ? { hint: "There is one; kept unless entered." } : {})}
          />
        </div>
      </Form>
    </Dialog>
  );
}
