import { useState } from "preact/hooks";
import type { Bucket, BucketCreateBody, BucketSignature } from "../../../../client/generated/api.ts";
import { call } from "../../core/api.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";

const PROVIDERS = [
  ["", "Detect from headers"],
  ["stripe", "Stripe"],
  ["github", "GitHub"],
  ["shopify", "Shopify"],
  ["svix", "Svix"],
  ["standard", "Standard Webhooks"],
  ["custom", "Custom"],
  ...[
    ...[
      "bitbucket",
      "discord",
      "gitlab",
      "intercom",
      "lemonsqueezy",
      "linear",
      "paddle",
      "sendgrid",
      "slack",
    ],
    ...["square", "twilio", "typeform", "zendesk", "zoom"],
    ...["dropbox", "meta", "microsoft-graph", "strava", "websub", "x"],
  ].map((name) => [name, name] as const),
] as const;

const DELIVERIES = [
  ["push", "Push to a URL"],
  ["pull", "Pull: consumers fetch events"],
] as const;
/** Providers that verify the URL with a token that the user enters there. */
const WITH_TOKEN = ["meta", "strava", "websub"];
const RECIPE = JSON.stringify(
  { header: "X-Signature", algorithm: "hmac-sha256", template: "{body}" },
  null,
  2,
);

interface BucketFormProps {
  /** Undefined for a new bucket. */
  readonly of?: Bucket;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new bucket; opens the bucket afterwards. */
async function create(body: BucketCreateBody, data: FormData): Promise<void> {
  const provider = textOf(data, "provider");
  const recipe = textOf(data, "signature");
  const token = textOf(data, "token");
  const made = await call("catch.buckets.create", {
    body: {
      ...body,
      ...(provider === undefined ? {} : { provider }),
      ...(recipe === undefined ? {} : { signature: JSON.parse(recipe) as BucketSignature }),
      ...(token === undefined ? {} : { challenge: { token } }),
    },
  });
  go(["catch", made.id]);
}

/** The form of a new or existing bucket. */
export function BucketForm({ of: bucket, onDone, onClose }: BucketFormProps) {
  const [delivery, setDelivery] = useState<string>(bucket?.delivery ?? "push");
  const [provider, setProvider] = useState("");
  const submit = async (data: FormData): Promise<void> => {
    const target_url = textOf(data, "target_url") ?? null;
    const delivery = textOf(data, "delivery") === "pull" ? ("pull" as const) : ("push" as const);
    const name = textOf(data, "name") ?? null;
    const secret = textOf(data, "signing_secret");
    const body = { target_url, delivery, name, ...(secret === undefined ? {} : { signing_secret: secret }) };
    if (bucket === undefined) return create(body, data);
    await call("catch.buckets.update", { params: { bucket_id: bucket.id }, body });
    toast("Bucket updated");
    onDone?.();
    onClose();
  };
  return (
    <Dialog
      title={bucket === undefined ? "New bucket" : `Edit ${bucket.name ?? bucket.id}`}
      onClose={onClose}
    >
      <Form submit={bucket === undefined ? "Create bucket" : "Save"} onCancel={onClose} onSubmit={submit}>
        <TextField
          name="target_url"
          label="Target URL"
          type="url"
          value={bucket?.target_url ?? undefined}
          placeholder="https://example.com/webhooks"
          required={delivery === "push"}
        />
        <SelectField
          name="delivery"
          label="Delivery"
          value={delivery}
          options={DELIVERIES}
          onChange={setDelivery}
          hint={
            delivery === "pull" ? "For ninefold listen, which forwards events to a local server." : undefined
          }
        />
        <TextField name="name" label="Name" value={bucket?.name ?? undefined} />
        <div class="two">
          {bucket === undefined ? (
            <SelectField
              name="provider"
              label="Provider"
              value=""
              options={PROVIDERS}
              onChange={setProvider}
            />
          ) : null}
          <TextField
            name="signing_secret"
            label="Signing secret"
            type="password"
            mono
            {...(bucket?.has_signing_secret === true
              ? { hint: "Leave empty to keep the current secret." }
              : {})}
          />
        </div>
        {provider === "custom" ? (
          <TextField name="signature" label="Signature scheme" rows={5} mono required value={RECIPE} />
        ) : null}
        {WITH_TOKEN.includes(provider) ? (
          <TextField name="token" label="Verify token" mono hint="The token that you set at the provider." />
        ) : null}
      </Form>
    </Dialog>
  );
}
