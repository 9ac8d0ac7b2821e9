import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { jsonPointer } from "../../../kernel/data/json-pointer.ts";
import {
  duration,
  flag,
  GivenMetadata,
  idParams,
  integer,
  listOf,
  Metadata,
  NextCursor,
  name,
  named,
  OwnerId,
  oneOf,
  orNull,
  partOf,
  setting,
  text,
} from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import {
  TEXT_SECRET_LENGTH_MAX,
  TEXT_SECRET_LENGTH_MIN,
} from "../../../kernel/outbound/signature-schemes.ts";
import { MANAGED, SECRET_DIGEST } from "../../../kernel/resources/managed.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import {
  GRACE_HOURS,
  LIST_LIMIT,
  RELAY_ID,
  RelaySecret,
  RelaySecretRotateBody,
  RelaySecretRotated,
  RetrySchedule,
  SigningSecret,
  TimeoutMs,
} from "../deliveries/schema.ts";
import { STANDARD_RETRIES } from "../domain.ts";
import { REQUESTED_SECRETS, SHOWN_SECRETS } from "./secret-settings.ts";
import { EndpointSignature } from "./signature.ts";
import { EndpointTemplate } from "./template.ts";

/** Longest `event_types` and `channels`: every message is compared with each of them. */
export const EVENT_TYPES_MAX = 100;
export const CHANNELS_MAX = 10;
/** Longest `description`. */
export const DESCRIPTION_LENGTH_MAX = 500;
/** Limits of `max_per_second` and `max_concurrency`, and the default of the latter. */
export const PER_SECOND_TO_ENDPOINT_MAX = 1_000;
export const CONCURRENCY_MAX = 64;
export const CONCURRENCY = 16;
/** Longest `order_key`. */
export const ORDER_KEY_LENGTH_MAX = 128;
/** Limit and default of `order_wait_ms`. */
export const ORDER_WAIT_MS_MAX = DAY_MS;
const ORDER_WAIT_MS = HOUR_MS;
/** Limit and default of `disable_after_hours`. */
export const DISABLE_HOURS_MAX = 720;
const DISABLE_HOURS = 120;
/** Default `timeout_ms` of an endpoint. */
const ENDPOINT_TIMEOUT_MS = 15_000;

/** Characters of event types and channels. */
const WORD = "[A-Za-z0-9_.-]{1,128}";
const WORD_MEANING = "1 to 128 letters, digits, _, . and -";

export const MessageType = Type.String({
  pattern: `^${WORD}$`,
  maxLength: 128,
  errorMessage: `must be ${WORD_MEANING}`,
  description: "Type of the event: letters, digits, `_`, `.` and `-`; must not start with `ninefold.`.",
  examples: ["invoice.paid"],
});

export const Channels = listOf(
  Type.String({ pattern: `^${WORD}$`, maxLength: 128, errorMessage: `must be ${WORD_MEANING}` }),
  {
    max: CHANNELS_MAX,
    of: "channels",
    description: "The message goes to endpoints that share a channel with it, or have none.",
    examples: [["eu"]],
  },
);

const Url = Type.String({
  minLength: 1,
  errorMessage: "must be an http or https URL such as https://example.com/hooks",
  description: "URL that receives the messages. A change also applies to pending deliveries.",
  examples: ["https://example.com/hooks"],
});

/** A setting with the same schema in requests and in responses. */
function plain<Schema extends TSchema>(schema: Schema, initial: Static<Schema>) {
  return setting(Type.Optional(schema), schema, initial);
}

/** Settings of an endpoint, without its URL, name, headers and state. */
const SETTINGS = {
  event_types: plain(
    listOf(
      Type.String({
        pattern: `^${WORD}(\\.\\*)?$`,
        maxLength: 130,
        errorMessage: `must be ${WORD_MEANING}, and may end in .*`,
      }),
      {
        max: EVENT_TYPES_MAX,
        of: "types such as invoice.paid or invoice.*",
        description:
          "Types of messages that the endpoint receives. `a.*` matches every type that starts with `a.`. Empty: all types except `ninefold.*`.",
        examples: [["invoice.*"]],
      },
    ),
    [],
  ),
  channels: plain(Channels, []),
  filter: plain(
    orNull(
      Type.Object(
        {},
        {
          additionalProperties: true,
          errorMessage: "must be an object",
          description:
            "Condition on the payload: field names mapped to required values, or operators such as `$gte` and `$or`.",
        },
      ),
      { examples: [null] },
    ),
    null,
  ),
  description: plain(
    orNull(text({ min: 0, max: DESCRIPTION_LENGTH_MAX, examples: ["Bookkeeping"] }), {
      description: "Description for people.",
    }),
    null,
  ),
  format: plain(
    oneOf(["envelope", "raw"], {
      errorMessage: "must be envelope or raw",
      description:
        "Format of the body: an object with `type`, `timestamp` and `data` (`envelope`), or the payload alone (`raw`).",
    }),
    "envelope",
  ),
  template: plain(orNull(EndpointTemplate, { examples: [null] }), null),
  signature: plain(orNull(EndpointSignature, { examples: [null] }), null),
  retry_schedule: plain(RetrySchedule, [...STANDARD_RETRIES]),
  timeout_ms: plain(TimeoutMs, ENDPOINT_TIMEOUT_MS),
  max_per_second: plain(
    orNull(
      integer({
        min: 1,
        max: PER_SECOND_TO_ENDPOINT_MAX,
        description: "Maximum attempts per second; further deliveries wait. Null (default) for no limit.",
        examples: [50],
      }),
      { examples: [null] },
    ),
    null,
  ),
  max_concurrency: plain(
    integer({
      min: 1,
      max: CONCURRENCY_MAX,
      description: `Maximum concurrent attempts. Default: ${CONCURRENCY}; with 1 the endpoint receives its deliveries in order.`,
      examples: [CONCURRENCY],
    }),
    CONCURRENCY,
  ),
  order_by: plain(
    orNull(
      jsonPointer(
        "JSON pointer to the text or number in the payload that orders messages: those with the same value are sent one after another. `order_key` of a message wins.",
        "/customer/id",
      ),
      { examples: [null] },
    ),
    null,
  ),
  order_wait_ms: plain(
    duration({
      unit: "ms",
      min: 0,
      max: ORDER_WAIT_MS_MAX,
      description: `Time after its first attempt for which an unfinished delivery holds the others of its order key, in milliseconds. Default: ${ORDER_WAIT_MS}.`,
      examples: [ORDER_WAIT_MS],
    }),
    ORDER_WAIT_MS,
  ),
  disable_after_hours: plain(
    duration({
      unit: "hours",
      min: 0,
      max: DISABLE_HOURS_MAX,
      description: `Hours of continuous failure after which the endpoint is disabled; 0 for never. Default: ${DISABLE_HOURS}.`,
      examples: [DISABLE_HOURS],
    }),
    DISABLE_HOURS,
  ),
  notify_email: plain(
    flag({
      description: "Whether the account receives an e-mail when the endpoint is disabled. Default: true.",
      examples: [true],
    }),
    true,
  ),
  keep_responses: plain(
    flag({ description: "Whether the log of attempts stores responses. Default: true.", examples: [true] }),
    true,
  ),
};

/** Default settings of an endpoint. */
export const ENDPOINT_DEFAULTS = partOf(SETTINGS, "initial");

const Named = orNull(name({ description: "Optional name, unique within the project." }), {
  examples: ["bookkeeping"],
});
/** The customer that an endpoint belongs to. */
const Owner = orNull(OwnerId, {
  description:
    "Id of your customer to whom the endpoint belongs: it receives only messages with this `owner_id`. It cannot be changed.",
});
const SettableState = oneOf(["live", "paused"], {
  errorMessage: "must be live or paused",
  description:
    "`paused` holds deliveries back until the endpoint is `live`. `live` also enables a disabled endpoint.",
});
export const ENDPOINT_STATES = ["live", "paused", "disabled"] as const;

const OPTIONAL = {
  ...partOf(SETTINGS, "requested"),
  name: Type.Optional(Named),
  owner_id: Type.Optional(Owner),
  metadata: GivenMetadata,
  ...REQUESTED_SECRETS,
  state: Type.Optional(SettableState),
};

const NewSecret = Type.Optional(
  Type.String({
    maxLength: TEXT_SECRET_LENGTH_MAX,
    errorMessage: `must be a text of at most ${TEXT_SECRET_LENGTH_MAX} characters`,
    description: `Secret to use: \`whsec_\` and the base64 of 24 to 64 bytes; with a \`signature\` of \`hmac-*\` or \`stripe\`, ${TEXT_SECRET_LENGTH_MIN} to ${TEXT_SECRET_LENGTH_MAX} printable characters; with \`ed25519\`, \`whsk_\` and the base64 of 32 bytes. Default: a generated one.`,
    examples: [],
  }),
);

/** Body of a new endpoint. */
export const RelayEndpointBody = named("RelayEndpointBody", {
  url: Url,
  ...OPTIONAL,
  secret: { ...NewSecret, writeOnly: true },
  ...MANAGED,
});
export type RelayEndpointBody = Static<typeof RelayEndpointBody>;

/** Body of an update. */
export const RelayEndpointPatch = named("RelayEndpointPatch", {
  url: Type.Optional(Url),
  ...OPTIONAL,
  secret: {
    ...NewSecret,
    writeOnly: true,
    description: `New signing secret, in the form that \`signature\` needs. For ${GRACE_HOURS} hours, messages are also signed with the old one.`,
  },
});
export type RelayEndpointPatch = Static<typeof RelayEndpointPatch>;

const TERMS = { url: Url, ...partOf(SETTINGS, "shown") };
const EndpointTerms = Type.Object(TERMS);
/** Settings of an endpoint, without its name, headers and state. */
export type EndpointTerms = Static<typeof EndpointTerms>;

const time = (description: string) => Type.Integer({ description: `${description}, in epoch milliseconds.` });

const ENDPOINT = {
  endpoint_id: Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  name: Named,
  owner_id: Owner,
  metadata: Metadata,
  ...TERMS,
  ...SHOWN_SECRETS,
  public_key: orNull(
    Type.String({ description: "Public key that verifies the messages, with a `signature` of `ed25519`." }),
    { examples: [null] },
  ),
  state: oneOf(ENDPOINT_STATES, {}),
  health: Type.Object({
    breaker: oneOf(["closed", "open"], {
      description: "State of the circuit breaker. While it is open, only single probes are sent.",
    }),
    consecutive_failures: Type.Integer({
      description: "Failed attempts since the last success.",
      examples: [0],
    }),
    failing_since: orNull(time("Time of the first of these failures"), { examples: [null] }),
    next_probe_at: orNull(time("Time of the next probe while the breaker is open"), { examples: [null] }),
    disabled_reason: orNull(Type.String({ description: "Reason why the endpoint was disabled." }), {
      examples: [null],
    }),
  }),
  created_at: time("Time of creation"),
  updated_at: time("Time of the last update"),
  ...MANAGED,
  ...SECRET_DIGEST,
};

/** An endpoint in a list. */
export const RelayEndpointItem = named("RelayEndpointItem", ENDPOINT);
export type RelayEndpointItem = Static<typeof RelayEndpointItem>;

export const RelayEndpoint = named("RelayEndpoint", {
  ...ENDPOINT,
  counts: Type.Object(
    {
      waiting: Type.Integer({ examples: [0] }),
      delivered_24h: Type.Integer({ examples: [1_042] }),
      failed_24h: Type.Integer({ examples: [0] }),
    },
    { description: "Number of deliveries, each counted up to 10,000." },
  ),
  recovery_id: Type.Optional(
    Type.String({
      description: "`resend_id` of the recovery that sends the endpoint what it missed, while it is running.",
      examples: [],
    }),
  ),
});
export type RelayEndpoint = Static<typeof RelayEndpoint>;

/** The secret of an endpoint in a response. A private key is not returned. */
export const ShownSecret = Type.Optional({
  ...SigningSecret,
  description:
    "Signing secret; omitted with a `signature` of `ed25519`, whose private key is never returned.",
});

/** A new endpoint with its secret. */
export const RelayEndpointCreated = named("RelayEndpointCreated", { ...ENDPOINT, secret: ShownSecret });
export type RelayEndpointCreated = Static<typeof RelayEndpointCreated>;

/** Body of a rotation of an endpoint's secret. */
export const RelayEndpointSecretRotateBody = named("RelayEndpointSecretRotateBody", {
  grace_hours: RelaySecretRotateBody.properties.grace_hours,
  secret: NewSecret,
});
export type RelayEndpointSecretRotateBody = Static<typeof RelayEndpointSecretRotateBody>;

const { public_key } = ENDPOINT;

export const RelayEndpointSecretRotated = named("RelayEndpointSecretRotated", {
  secret: ShownSecret,
  public_key,
  previous_expires_at: RelaySecretRotated.properties.previous_expires_at,
});
export type RelayEndpointSecretRotated = Static<typeof RelayEndpointSecretRotated>;

const { created_at, previous } = RelaySecret.properties;

/** An endpoint's signing secret, or its public key. */
export const RelayEndpointSecret = named("RelayEndpointSecret", {
  secret: ShownSecret,
  public_key,
  created_at,
  previous,
});
export type RelayEndpointSecret = Static<typeof RelayEndpointSecret>;

/** Path of an endpoint. */
export const RelayEndpointParams = idParams("endpoint");

/** Query of a list of endpoints. */
export const RelayEndpointQuery = named("RelayEndpointQuery", {
  name: Type.Optional(name({ description: "Returns only the endpoint with exactly this name." })),
  owner_id: Type.Optional(
    Type.Unsafe<string>({ ...OwnerId, description: "Only endpoints of this customer." }),
  ),
  state: Type.Optional(oneOf(ENDPOINT_STATES)),
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayEndpointQuery = Static<typeof RelayEndpointQuery>;

/** A page of endpoints, newest first. */
export const RelayEndpointPage = named("RelayEndpointPage", {
  endpoints: Type.Array(RelayEndpointItem),
  cursor: NextCursor,
});
export type RelayEndpointPage = Static<typeof RelayEndpointPage>;

/** Body of a test event. */
export const RelayEndpointTestBody = named("RelayEndpointTestBody", {
  event_type: Type.Optional(MessageType),
  payload: Type.Optional(
    Type.Object({}, { additionalProperties: true, errorMessage: "must be a JSON object", examples: [{}] }),
  ),
});
export type RelayEndpointTestBody = Static<typeof RelayEndpointTestBody>;

/** Body of a preview. */
export const RelayPreviewBody = named("RelayPreviewBody", {
  event_type: Type.Optional(MessageType),
  payload: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        errorMessage: "must be a JSON object",
        description: "Payload of the previewed message. Requires `event_type`.",
        examples: [{ id: "o_17" }],
      },
    ),
  ),
  message_id: Type.Optional(
    Type.String({
      maxLength: 64,
      errorMessage: "must be the id of a message",
      description: "Message to preview, in place of `event_type` and `payload`.",
      examples: [],
    }),
  ),
  template: Type.Optional(
    orNull(EndpointTemplate, {
      description: "Template to try; null for `format`. Default: that of the endpoint.",
      examples: [{ order: { $: "/data/id" } }],
    }),
  ),
});
export type RelayPreviewBody = Static<typeof RelayPreviewBody>;

export const RelayPreview = named("RelayPreview", {
  body: Type.String({ description: "Body that the endpoint would receive.", examples: ['{"order":"o_17"}'] }),
});
export type RelayPreview = Static<typeof RelayPreview>;

export const RelayEndpointTested = named("RelayEndpointTested", {
  message_id: Type.String({ examples: ["msg_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  relay_id: RELAY_ID,
});
export type RelayEndpointTested = Static<typeof RelayEndpointTested>;
