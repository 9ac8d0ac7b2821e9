import { DETECTED_PROVIDERS, type Provider, type Verification } from "../domain.ts";
import { ADYEN_ITEMS, MAILGUN, type OwnSignature } from "./body-signatures.ts";
import { PAYPAL, SNS } from "./certified-signatures.ts";
import {
  type FieldReader,
  firstOf,
  headerOf,
  joinOf,
  ofSingle,
  type Received,
  type Source,
} from "./extracted-fields.ts";
import { canVerify, isSigned, type Recipe, type Scheme, schemeOf } from "./signatures.ts";

/** Kind of a sender's challenge: see `challenges.ts`. */
type ChallengeKind =
  | "hub"
  | "hub-json"
  | "slack"
  | "graph"
  | "zoom"
  | "discord"
  | "crc"
  | "dropbox"
  | "event-grid";

/** A sender's signature schemes, headers, ids and types. */
export interface Preset {
  /** Signature schemes, one of which must be valid; empty if the sender does not sign, or the bucket has a recipe. */
  readonly schemes: readonly Scheme[];
  /** The sender's signature that no recipe describes, an alternative to its schemes; null for none. */
  readonly ownSignature: OwnSignature | null;
  /** Text of the response to accepted requests that the sender expects; null for the default JSON. */
  readonly acknowledgement: string | null;
  /**
   * Prefixes of its headers, which are forwarded with the event: some receivers verify them again, and some senders
   * send the type only in a header.
   */
  readonly prefixes: readonly string[];
  readonly eventId: FieldReader;
  readonly eventType: FieldReader;
  readonly challenge: ChallengeKind | null;
  /** Whether a text can be a secret of the sender, as far as its encoding does not say it. */
  readonly canBeSecret: (text: string) => boolean;
}

/** A preset in `presets.json` form. */
interface PresetData {
  readonly recipes?: readonly Recipe[];
  readonly prefixes?: readonly string[];
  readonly id?: readonly Source[];
  readonly type?: readonly Source[];
  /** Two sources that together form the id. */
  readonly ids?: readonly [Source, Source];
  /** Two sources that together form the type. */
  readonly types?: readonly [Source, Source];
  /** List in the body, with several elements of which the event has no id. */
  readonly list?: Source;
  readonly challenge?: ChallengeKind;
  readonly ownSignature?: OwnSignature;
  readonly acknowledgement?: string;
  readonly canBeSecret?: (text: string) => boolean;
}

/** A secret that the sender makes, not its users, has no blanks: a copy with a line break at its end signs nothing. */
function hasNoBlanks(text: string): boolean {
  return !/\s/.test(text);
}

/** Beginnings of Stripe's API keys, which are often entered in place of the signing secret. */
const API_KEYS = ["sk_", "pk_", "rk_"];

/** The ARN of a topic of Amazon SNS. */
const TOPIC_ARN = /^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d+:[A-Za-z0-9_.-]+$/;

const SHA256_HEX = { algorithm: "hmac-sha256", encoding: "hex" } as const;
const SHA256_BASE64 = { algorithm: "hmac-sha256", encoding: "base64" } as const;
const OF_BODY = "{body}";

/** Standard Webhooks, with either prefix of its headers. */
function standardBy(name: "webhook" | "svix"): Recipe {
  return {
    ...SHA256_BASE64,
    header: `${name}-signature`,
    prefix: "v1,",
    separator: " ",
    timestamp_header: `${name}-timestamp`,
    template: `{id:${name}-id}.{timestamp}.{body}`,
    secret_encoding: "whsec",
  };
}

const STANDARD = standardBy("webhook");
/** Polar's key is the UTF-8 text of the whole secret. */
const POLAR: Recipe = { ...STANDARD, secret_encoding: "text" };
const SVIX = standardBy("svix");
const FORGE_SHA256: Recipe = {
  ...SHA256_HEX,
  header: "x-hub-signature-256",
  prefix: "sha256=",
  template: OF_BODY,
};

const TWILIO: Recipe = {
  header: "x-twilio-signature",
  algorithm: "hmac-sha1",
  encoding: "base64",
  template: "{url}{form}",
  any_port: true,
};

const DATA: Readonly<Record<Provider, PresetData>> = {
  stripe: {
    recipes: [
      {
        ...SHA256_HEX,
        header: "stripe-signature",
        pairs: ",",
        signature_key: "v1",
        timestamp_key: "t",
        template: "{timestamp}.{body}",
      },
    ],
    prefixes: ["stripe-"],
    id: ["/id"],
    type: ["/type"],
    canBeSecret: (text) => hasNoBlanks(text) && !API_KEYS.some((start) => text.startsWith(start)),
  },
  github: {
    recipes: [FORGE_SHA256],
    prefixes: ["x-github-", "x-hub-"],
    id: ["header:x-github-delivery"],
    type: ["header:x-github-event"],
  },
  shopify: {
    // Webhooks, and Events, whose headers have no `x-`.
    recipes: ["x-shopify-hmac-sha256", "shopify-hmac-sha256"].map((header) => ({
      ...SHA256_BASE64,
      header,
      template: OF_BODY,
    })),
    prefixes: ["x-shopify-", "shopify-"],
    id: ["header:x-shopify-event-id", "header:shopify-webhook-id"],
    type: ["header:x-shopify-topic", "header:shopify-topic"],
    canBeSecret: hasNoBlanks,
  },
  svix: {
    // Services may send without Svix's name in the headers.
    recipes: [SVIX, STANDARD],
    prefixes: ["svix-", "webhook-"],
    id: ["header:svix-id", "header:webhook-id"],
    type: ["/type"],
  },
  custom: {},
  standard: {
    recipes: [STANDARD, SVIX, POLAR],
    prefixes: ["webhook-", "svix-", "x-gitlab-"],
    id: ["header:webhook-id", "header:svix-id"],
    // GitLab's signed webhooks have no type in the body.
    type: ["/type", "header:x-gitlab-event"],
  },
  slack: {
    recipes: [
      {
        ...SHA256_HEX,
        header: "x-slack-signature",
        prefix: "v0=",
        template: "v0:{timestamp}:{body}",
        timestamp_header: "x-slack-request-timestamp",
      },
    ],
    prefixes: ["x-slack-"],
    id: ["/event_id"],
    type: ["/event/type", "/type"],
    challenge: "slack",
    canBeSecret: hasNoBlanks,
  },
  twilio: {
    // The second one is that of shared keys.
    recipes: [TWILIO, { ...TWILIO, algorithm: "hmac-sha256" }],
    prefixes: ["x-twilio-", "i-twilio-"],
    id: ["header:i-twilio-idempotency-token"],
    canBeSecret: hasNoBlanks,
  },
  linear: {
    recipes: [
      {
        ...SHA256_HEX,
        header: "linear-signature",
        template: OF_BODY,
        timestamp_at: "/webhookTimestamp",
        timestamp_format: "unix_ms",
        tolerance_seconds: 60,
      },
    ],
    prefixes: ["linear-"],
    id: ["header:linear-delivery"],
    types: ["/type", "/action"],
    canBeSecret: hasNoBlanks,
  },
  lemonsqueezy: {
    recipes: [{ ...SHA256_HEX, header: "x-signature", template: OF_BODY }],
    prefixes: ["x-signature", "x-event-name"],
    id: ["digest"],
    type: ["header:x-event-name"],
  },
  bitbucket: {
    recipes: [{ ...FORGE_SHA256, header: "x-hub-signature" }],
    prefixes: ["x-hub-", "x-request-uuid", "x-request-id", "x-event-key", "x-hook-uuid", "x-attempt-number"],
    // Of Bitbucket Cloud, and of Data Center.
    id: ["header:x-request-uuid", "header:x-request-id"],
    type: ["header:x-event-key"],
  },
  discord: {
    recipes: [
      {
        header: "x-signature-ed25519",
        algorithm: "ed25519",
        encoding: "hex",
        secret_encoding: "hex",
        timestamp_header: "x-signature-timestamp",
        template: "{timestamp}{body}",
      },
    ],
    prefixes: ["x-signature-"],
    // Webhook Events have no id: a retry has the same body.
    id: ["/id", "digest"],
    type: ["/event/type", "/type"],
    challenge: "discord",
  },
  paddle: {
    recipes: [
      {
        ...SHA256_HEX,
        header: "paddle-signature",
        pairs: ";",
        signature_key: "h1",
        timestamp_key: "ts",
        template: "{timestamp}:{body}",
      },
    ],
    prefixes: ["paddle-"],
    id: ["/event_id"],
    type: ["/event_type"],
    canBeSecret: hasNoBlanks,
  },
  sendgrid: {
    recipes: [
      {
        algorithm: "ecdsa-p256-sha256",
        encoding: "base64",
        secret_encoding: "base64",
        header: "x-twilio-email-event-webhook-signature",
        timestamp_header: "x-twilio-email-event-webhook-timestamp",
        template: "{timestamp}{body}",
      },
    ],
    prefixes: ["x-twilio-"],
    id: ["digest"],
    type: ["/0/event"],
  },
  square: {
    recipes: [{ ...SHA256_BASE64, header: "x-square-hmacsha256-signature", template: "{url}{body}" }],
    prefixes: ["x-square-", "square-"],
    id: ["/event_id"],
    type: ["/type"],
    canBeSecret: hasNoBlanks,
  },
  zoom: {
    recipes: [
      {
        ...SHA256_HEX,
        header: "x-zm-signature",
        prefix: "v0=",
        template: "v0:{timestamp}:{body}",
        timestamp_header: "x-zm-request-timestamp",
      },
    ],
    prefixes: ["x-zm-"],
    id: ["digest"],
    type: ["/event"],
    challenge: "zoom",
    canBeSecret: hasNoBlanks,
  },
  intercom: {
    recipes: [
      {
        header: "x-hub-signature",
        algorithm: "hmac-sha1",
        encoding: "hex",
        prefix: "sha1=",
        template: OF_BODY,
      },
    ],
    prefixes: ["x-hub-"],
    id: ["/id"],
    type: ["/topic"],
    canBeSecret: hasNoBlanks,
  },
  gitlab: {
    recipes: [{ header: "x-gitlab-token", algorithm: "token" }],
    prefixes: ["x-gitlab-", "idempotency-key"],
    // Webhooks that a webhook has caused share the UUID of the first; a retry has the key of its webhook.
    id: ["header:idempotency-key", "header:x-gitlab-event-uuid"],
    type: ["header:x-gitlab-event"],
  },
  zendesk: {
    recipes: [
      {
        ...SHA256_BASE64,
        header: "x-zendesk-webhook-signature",
        template: "{timestamp}{body}",
        timestamp_header: "x-zendesk-webhook-signature-timestamp",
        timestamp_format: "rfc3339",
      },
    ],
    prefixes: ["x-zendesk-"],
    // The body of a trigger's webhook is its author's: `/id` may be that of a ticket.
    id: ["header:x-zendesk-webhook-invocation-id", "/id"],
    type: ["/type"],
    canBeSecret: hasNoBlanks,
  },
  typeform: {
    recipes: [{ ...SHA256_BASE64, header: "typeform-signature", prefix: "sha256=", template: OF_BODY }],
    prefixes: ["typeform-"],
    id: ["/event_id"],
    type: ["/event_type"],
  },
  meta: { prefixes: ["x-hub-"], challenge: "hub" },
  strava: { challenge: "hub-json" },
  websub: { prefixes: ["x-hub-", "link"], challenge: "hub" },
  "microsoft-graph": { challenge: "graph" },
  x: { prefixes: ["x-twitter-"], challenge: "crc" },
  dropbox: { prefixes: ["x-dropbox-"], challenge: "dropbox" },
  adyen: {
    // Platform webhooks sign their bytes; those of payments have a signature in each item.
    recipes: [{ ...SHA256_BASE64, header: "hmacsignature", secret_encoding: "hex", template: OF_BODY }],
    ownSignature: ADYEN_ITEMS,
    prefixes: ["hmacsignature", "protocol"],
    list: "/notificationItems",
    ids: [
      "/notificationItems/0/NotificationRequestItem/pspReference",
      "/notificationItems/0/NotificationRequestItem/eventCode",
    ],
    type: ["/notificationItems/0/NotificationRequestItem/eventCode", "/type"],
    acknowledgement: "[accepted]",
  },
  mailgun: {
    ownSignature: MAILGUN,
    prefixes: ["x-mailgun-"],
    id: ["/event-data/id"],
    type: ["/event-data/event"],
    canBeSecret: hasNoBlanks,
  },
  paypal: {
    ownSignature: PAYPAL,
    prefixes: ["paypal-"],
    id: ["/id"],
    type: ["/event_type"],
    canBeSecret: hasNoBlanks,
  },
  sns: {
    ownSignature: SNS,
    prefixes: ["x-amz-sns-"],
    id: ["/MessageId"],
    type: ["/Type"],
    canBeSecret: (text) => TOPIC_ARN.test(text),
  },
  "event-grid": {
    prefixes: ["aeg-", "ce-"],
    list: "",
    id: ["/0/id", "/id", "header:ce-id"],
    type: ["/0/eventType", "/0/type", "/eventType", "/type", "header:ce-type"],
    challenge: "event-grid",
  },
};

function presetOf({
  recipes = [],
  prefixes = [],
  id = [],
  ids,
  list,
  type = [],
  types,
  challenge,
  ownSignature,
  acknowledgement,
  canBeSecret = () => true,
}: PresetData): Preset {
  let schemes: readonly Scheme[] | null = null;
  const eventId = ids === undefined ? firstOf(id) : joinOf(...ids);
  return {
    // Compiled on use: few servers receive from more than a few of the providers.
    get schemes() {
      schemes ??= recipes.map(schemeOf);
      return schemes;
    },
    ownSignature: ownSignature ?? null,
    acknowledgement: acknowledgement ?? null,
    prefixes,
    eventId: list === undefined ? eventId : ofSingle(list, eventId),
    eventType: types === undefined ? firstOf(type) : joinOf(...types),
    challenge: challenge ?? null,
    canBeSecret,
  };
}

/** The presets by provider. */
export const PRESETS = Object.fromEntries(
  Object.entries(DATA).map(([name, data]) => [name, presetOf(data)]),
) as Readonly<Record<Provider, Preset>>;

/** A caller's signature recipe, with the sources of ids and types. */
export type CustomRecipe = Recipe & { readonly event_id?: Source; readonly event_type?: Source };

/** A preset with a caller's recipe. @throws Error naming the error of its template */
export function withRecipe(preset: Preset, { event_id, event_type, ...recipe }: CustomRecipe): Preset {
  const scheme = schemeOf(recipe);
  const sources = [event_id, event_type].flatMap((source) => source ?? []);
  return {
    ...preset,
    schemes: [scheme],
    ownSignature: null,
    prefixes: [...preset.prefixes, ...scheme.headers, ...sources.flatMap((source) => headerOf(source) ?? [])],
    eventId: firstOf(event_id === undefined ? [] : [event_id]),
    eventType: firstOf(event_type === undefined ? [] : [event_type]),
  };
}

/** Detects the provider by the headers; null if it is unknown. */
export function detectProvider(headers: Headers): Provider | null {
  return DETECTED_PROVIDERS.find((name) => isFrom(PRESETS[name], headers)) ?? null;
}

/** Whether a request has the headers of a sender's signature; those of Standard Webhooks have many senders. */
function isFrom({ schemes }: Preset, headers: Headers): boolean {
  return schemes.some((scheme) => scheme.header !== STANDARD.header && isSignedWith(scheme, headers));
}

/** Whether a request has the headers of a signature and of the values that it covers. */
function isSignedWith(scheme: Scheme, headers: Headers): boolean {
  return scheme.headers.every((header) => headers.has(header));
}

/** Whether a header (lower-case) is forwarded with a sender's events. */
export function isProviderHeader({ prefixes }: Preset, header: string): boolean {
  return prefixes.some((prefix) => header.startsWith(prefix));
}

/** Whether the signatures of a sender can be verified, with a secret. */
export function canVerifySignatures({ schemes, ownSignature }: Preset): boolean {
  return schemes.length > 0 || ownSignature !== null;
}

/**
 * Verifies a request's signature. Without a scheme or a secret the result is `none`; with both, a missing
 * signature is invalid. With several secrets, as during a rotation, one must match.
 */
export function verify(preset: Preset | null, secrets: readonly string[], received: Received): Verification {
  if (preset === null || !canVerifySignatures(preset) || secrets.length === 0) return "none";
  const { schemes, ownSignature } = preset;
  const holds =
    schemes.some((scheme) => secrets.some((secret) => isSigned(scheme, secret, received))) ||
    secrets.some((secret) => ownSignature?.isSigned(secret, received) === true);
  return holds ? "valid" : "invalid";
}

/** Secrets of Polar, as it shows them. */
const POLAR_SECRET = "polar_whs_";

/**
 * Whether a signature can be valid with a secret, also where the sender's scheme is not known yet. `isPolar`: whether the sender is
 * Polar, whose secrets may be any text.
 */
export function canBeVerified(preset: Preset | null, secret: string, isPolar = false): boolean {
  if (preset === null || !canVerifySignatures(preset)) return true;
  if (!preset.canBeSecret(secret)) return false;
  if (preset.schemes.length === 0) return true;
  const schemes = preset.schemes.filter(
    (scheme) => !isTextKey(scheme) || isPolar || secret.startsWith(POLAR_SECRET),
  );
  return schemes.some((scheme) => canVerify(scheme, secret));
}

/** Whether a scheme is that of Polar among those of Standard Webhooks. */
function isTextKey({ header, secret_encoding }: Scheme): boolean {
  return header === POLAR.header && secret_encoding === "text";
}
