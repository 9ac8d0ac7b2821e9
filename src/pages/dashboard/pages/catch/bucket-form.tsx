import type { Bucket, BucketUpdateBody } from "../../../../client/generated/api.ts";
import { go } from "../../core/route.ts";
import { DataForm } from "../../ui/form.tsx";
import { SECRET } from "../../ui/kinds.ts";
import { PREVIOUS_HOURS, settingsFields, settingsIn } from "./bucket-settings.tsx";
import { TargetFields } from "./target-fields.tsx";

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
    ...["square", "twilio", "typeform", "zendesk", "zoom", "adyen", "mailgun", "paypal", "sns"],
    ...["dropbox", "event-grid", "meta", "microsoft-graph", "strava", "websub", "x"],
  ].map((name) => [name, name] as const),
] as const;
const DELIVERIES = [
  ["push", "Push to a URL"],
  ["endpoints", "Push to endpoints"],
  ["pull", "Pull: consumers fetch events"],
] as const;
/** Providers that verify the URL with a token that the user enters there. */
const WITH_TOKEN = ["meta", "strava", "websub"];
const RECIPE = { header: "X-Signature", algorithm: "hmac-sha256", template: "{body}" };

interface BucketFormProps {
  /** Undefined for a new bucket, which is opened afterwards. */
  readonly of?: Bucket;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing bucket. */
export function BucketForm({ of: bucket, onDone, onClose }: BucketFormProps) {
  const isNew = bucket === undefined;
  return (
    <DataForm
      title={isNew ? "New bucket" : `Edit ${bucket.name ?? bucket.id}`}
      submit={isNew ? "Create bucket" : "Save"}
      operation={isNew ? "catch.buckets.create" : "catch.buckets.update"}
      params={{ bucket_id: bucket?.id ?? "" }}
      of={bucket}
      start={
        isNew
          ? { $way: "push", targets: [], provider: "", signature: RECIPE }
          : { $way: wayOf(bucket), $hours: PREVIOUS_HOURS }
      }
      fields={(get) => {
        const isPull = get("$way") === "pull";
        return [
          get("$way") === "endpoints"
            ? { name: "targets", control: TargetFields }
            : { name: "target_url", label: "Target URL", required: !isPull, hint: "" },
          {
            name: "$way",
            label: "Delivery",
            options: DELIVERIES,
            hint: isPull ? "For ninefold listen, which forwards events to a local server." : "",
          },
          { name: "name", placeholder: "", hint: "" },
          [
            isNew ? { name: "provider", options: PROVIDERS, hint: "" } : null,
            {
              name: "signing_secret",
              kind: SECRET,
              hint: bucket?.has_signing_secret === true ? "Leave empty to keep the current secret." : "",
            },
          ],
          get("provider") === "custom" && isNew
            ? { name: "signature", label: "Signature scheme", rows: 5, required: true, hint: "" }
            : null,
          WITH_TOKEN.includes(String(get("provider")))
            ? {
                name: "challenge.token",
                label: "Verify token",
                mono: true,
                placeholder: "",
                hint: "The token that you set at the provider.",
              }
            : null,
          isNew ? null : { more: settingsFields(bucket, get) },
        ];
      }}
      adapt={(body, get) => ({
        ...body,
        ...deliveryIn(String(get("$way")), bucket, body),
        ...settingsIn(body, get, bucket),
      })}
      done={isNew ? undefined : "Bucket updated"}
      onDone={(answer) => {
        if (isNew) go(["catch", answer.id]);
        else onDone?.();
      }}
      onClose={onClose}
    />
  );
}

/** How the events of a bucket reach their receivers: one of {@link DELIVERIES}. */
function wayOf({ delivery, targets }: Bucket): string {
  return delivery === "push" && targets.length > 0 ? "endpoints" : delivery;
}

/** The fields that a chosen delivery changes: a URL replaces the endpoints, and endpoints replace the URL. */
function deliveryIn(
  way: string,
  bucket: Bucket | undefined,
  { target_url }: BucketUpdateBody,
): BucketUpdateBody {
  const delivery = way === "pull" ? "pull" : "push";
  return {
    ...(bucket?.delivery === delivery ? {} : { delivery }),
    ...(way === "endpoints" && bucket?.target_url != null ? { target_url: null } : {}),
    ...(target_url != null && bucket !== undefined && bucket.targets.length > 0 ? { targets: [] } : {}),
  };
}
