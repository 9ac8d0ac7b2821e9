import { type Static, Type } from "@sinclair/typebox";
import {
  dateTime,
  duration,
  flag,
  integer,
  name,
  named,
  oneOf,
  orNull,
  text,
  uuid,
} from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { URL_LENGTH_MAX } from "../../kernel/outbound/target.ts";
import { MANAGED, SECRET_DIGEST } from "../../kernel/resources/managed.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import {
  ACK_RESULTS,
  ATTEMPT_KINDS,
  ATTEMPTS_STORED_MAX,
  BUCKET_STATES,
  DELIVERIES,
  DELIVERY_STATUSES,
  EVENT_STATUSES,
  INGEST_STATUSES,
  PROVIDERS,
  RESPONSE_BYTES_STORED_MAX,
  SIGNING_SECRET_LENGTH_MAX,
  VERIFICATIONS,
} from "./domain.ts";
import { FIELD_LENGTH_MAX } from "./providers/extracted-fields.ts";
import { SettingsInput, SettingsView } from "./settings-schema.ts";

/** Default `limit` of a list. */
export const EVENTS_LIMIT = 20;
/** Longest search text: longer than any id. */
const SEARCH_LENGTH_MAX = 100;
/** Longest id in a request: valid ids are far shorter. */
export const ID_LENGTH_MAX = 64;
/** Longest `error` of an acknowledgement. */
export const ACK_ERROR_LENGTH_MAX = 500;
/** Longest `duration_ms` of an acknowledgement: a day. */
export const ACK_DURATION_MS_MAX = DAY_MS;
const BucketId = Type.String({ examples: ["brave-otter-314159"] });
/** An event's id for examples. */
export const EVENT_ID = "evt_1jjbpshg000";

const State = oneOf(BUCKET_STATES, {
  description: "`paused` (initially) stores events and forwards none; `live` forwards them.",
});
const EventStatusName = oneOf(EVENT_STATUSES);
const VerificationName = oneOf(VERIFICATIONS);
const ProviderOrNull = orNull(oneOf(PROVIDERS));
export const Time = dateTime({ description: "Time as RFC 3339, in UTC." });

/** A provider in a request. An unknown one is a separate error, `catch.provider_unsupported`. */
export const ProviderName = Type.String({
  maxLength: ID_LENGTH_MAX,
  errorMessage: `must be one of ${PROVIDERS.join(", ")}`,
  description: "Provider of the events, such as `stripe`.",
  examples: ["stripe"],
});

const TargetUrl = orNull(
  Type.String({ maxLength: URL_LENGTH_MAX, examples: ["https://example.com/webhooks"] }),
  {
    errorMessage: "must be an https URL such as https://example.com/webhooks",
    description:
      "HTTPS URL that events are forwarded to. Null with `targets`; optional with `delivery: pull`.",
  },
);

const Delivery = oneOf(DELIVERIES, {
  errorMessage: `must be ${DELIVERIES.join(" or ")}`,
  description:
    "`push` forwards events to `target_url` or `targets`. `pull` stores them until a client fetches and acknowledges them.",
});

const GivenSecret = Type.String({ minLength: 1, maxLength: SIGNING_SECRET_LENGTH_MAX, writeOnly: true });
const SigningSecret = orNull(GivenSecret, {
  errorMessage: `must be a string of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters, or null for none`,
  description: "Signing secret of the provider, stored encrypted and not returned; null removes it.",
});

const GivenName = name({ description: "Optional name, unique within the project." });
const Name = orNull(GivenName, {
  errorMessage: `${GivenName["errorMessage"]}, or null for none`,
  description: "Optional name, unique within the project.",
});

/** Path of a bucket. */
export const BucketParams = Type.Object({
  bucket_id: Type.String({ ...BucketId, maxLength: ID_LENGTH_MAX }),
});

/** Public path of a bucket: any text, because a bucket that does not exist is not an error there. */
export const PublicBucketParams = Type.Object({
  bucket_id: BucketId,
});

/** Path of an event. */
export const EventParams = Type.Object({
  ...BucketParams.properties,
  event_id: Type.String({ maxLength: ID_LENGTH_MAX, examples: [EVENT_ID] }),
});

/** Body of a new bucket. */
export const BucketCreateBody = Type.Object(
  {
    state: Type.Optional(State),
    target_url: Type.Optional(TargetUrl),
    delivery: Type.Optional(Delivery),
    provider: Type.Optional(
      orNull(ProviderName, {
        errorMessage: "must be a string",
        description:
          "Provider whose signatures are verified; it cannot be changed. Without one, Stripe, GitHub, Shopify and Svix are detected by their headers.",
      }),
    ),
    signing_secret: Type.Optional(SigningSecret),
    name: Type.Optional(Name),
    ...SettingsInput,
    ...MANAGED,
  },
  { $id: "BucketCreateBody" },
);
export type BucketCreateBody = Static<typeof BucketCreateBody>;

/** Body of an update. */
export const BucketUpdateBody = Type.Object(
  {
    state: Type.Optional(State),
    target_url: Type.Optional(TargetUrl),
    delivery: Type.Optional(Delivery),
    signing_secret: Type.Optional(SigningSecret),
    name: Type.Optional(Name),
    ...SettingsInput,
  },
  { $id: "BucketUpdateBody" },
);
export type BucketUpdateBody = Static<typeof BucketUpdateBody>;

export const Bucket = Type.Object(
  {
    id: BucketId,
    name: orNull(Type.String({ examples: ["shop"] })),
    ingest_url: orNull(Type.String({ examples: ["https://ninefold.example.com/v1/in/brave-otter-314159"] }), {
      description:
        "Public URL for the provider, with the origin of this request or `--public-url`. It accepts every method. Null for people with the role `viewer` or `responder`.",
    }),
    target_url: orNull(Type.String({ examples: ["https://example.com/webhooks"] })),
    provider: ProviderOrNull,
    has_signing_secret: Type.Boolean(),
    ...SettingsView,
    state: State,
    delivery: oneOf(DELIVERIES, {}),
    created_at: Time,
    updated_at: Time,
    ...MANAGED,
    ...SECRET_DIGEST,
    too_large: Type.Integer({
      description: "Number of requests that were too large to be stored; their senders got 413.",
      examples: [0],
    }),
    last_too_large_at: orNull(Time, {
      description: "Time of the last request that was too large; null if there was none.",
      examples: [null],
    }),
    events: Type.Object(
      { pending: Type.Integer(), delivered: Type.Integer(), failed: Type.Integer() },
      { description: "Number of stored events by status." },
    ),
    hint: Type.Optional(
      Type.String({
        description: "How to start forwarding; only while the bucket is paused and its `delivery` is `push`.",
        examples: [],
      }),
    ),
  },
  { $id: "Bucket" },
);
export type Bucket = Static<typeof Bucket>;

/** Query of a list of buckets. */
export const BucketQuery = Type.Object(
  { name: Type.Optional(name({ description: "Returns only the bucket with exactly this name." })) },
  { $id: "BucketQuery" },
);

/** The buckets of a project. */
export const BucketList = Type.Object({ buckets: Type.Array(Bucket) }, { $id: "BucketList" });

/** Response to an inbound request. */
export const Ingested = Type.Object(
  {
    status: oneOf(INGEST_STATUSES),
    verification: VerificationName,
    event_id: Type.Optional(
      Type.String({ description: "ID of the event, if it was accepted.", examples: [EVENT_ID] }),
    ),
  },
  { $id: "Ingested" },
);
export type Ingested = Static<typeof Ingested>;

const EventType = orNull(Type.String({ examples: ["invoice.paid"] }), {
  description: "Type of the event, as the sender names it; null if unknown.",
});

/** Longest preview of a body: a line of a list. */
export const PREVIEW_LENGTH = 120;

/** An event in a list. */
export const EventItem = Type.Object(
  {
    id: Type.String({ description: "ID of the event. IDs sort by time of receipt.", examples: [EVENT_ID] }),
    bucket_id: BucketId,
    provider: ProviderOrNull,
    event_type: EventType,
    status: EventStatusName,
    verification: VerificationName,
    received_at: Time,
    attempts: Type.Integer({ description: "Number of attempts to deliver the event." }),
    response_status: orNull(Type.Integer({ examples: [200] }), {
      description: "HTTP status of the last response; null without a response.",
    }),
    error: orNull(Type.String(), { description: "Reason why the event is not delivered.", examples: [null] }),
    delivered_at: orNull(Time),
    next_attempt_at: orNull(Time, {
      description: "Time of the next retry; null if none is scheduled.",
      examples: [null],
    }),
    method: Type.Optional(
      Type.String({
        description: "Method of the request. Only in lists with `details`.",
        examples: ["POST"],
      }),
    ),
    preview: Type.Optional(
      orNull(Type.String(), {
        description: `Start of the body, up to ${PREVIEW_LENGTH} characters, with single spaces; null for a body that is not text, or above 64 KiB. Only in lists with \`details\`.`,
        examples: ['{"id":"evt_1","type":"invoice.paid"}'],
      }),
    ),
  },
  { $id: "EventItem" },
);
export type EventItem = Static<typeof EventItem>;

/** A delivery of an event to an endpoint. */
export const EventDelivery = named("EventDelivery", {
  relay_id: uuid({ description: "ID of the delivery." }),
  endpoint_id: Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
  status: oneOf(DELIVERY_STATUSES, {}),
  attempts: Type.Integer({ description: "Number of finished attempts." }),
  response_status: orNull(Type.Integer({ examples: [200] }), {
    description: "HTTP status of the last response; null without a response.",
  }),
  error: orNull(Type.String(), { description: "Error of the last attempt.", examples: [null] }),
  finished_at: orNull(Time, {
    description: "Time when the delivery was finished; null before.",
    examples: [null],
  }),
});
export type EventDelivery = Static<typeof EventDelivery>;

/** An attempt to deliver an event. */
export const EventAttempt = named("EventAttempt", {
  at: Time,
  kind: oneOf(ATTEMPT_KINDS, {}),
  endpoint_id: Type.Optional(
    Type.String({
      description: "Endpoint that the attempt was made to, if the bucket has targets.",
      examples: [],
    }),
  ),
  duration_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [503] })),
  error: orNull(Type.String({ examples: ["the target responded with 503"] })),
  response_body: orNull(Type.String({ examples: ["upstream is down"] }), {
    description: `First ${RESPONSE_BYTES_STORED_MAX} bytes of the response's body as text; null without a response.`,
  }),
});
export type EventAttempt = Static<typeof EventAttempt>;

/** An event with its request and attempts. */
export const CaughtEvent = Type.Object(
  {
    ...EventItem.properties,
    method: Type.String({ examples: ["POST"] }),
    path: Type.String({ description: "Path of the request after that of the bucket.", examples: [""] }),
    query: Type.String({ description: "Query of the request, without the question mark.", examples: [""] }),
    headers: Type.Record(Type.String(), Type.String()),
    headers_list: Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }), {
      description: "Headers as pairs of name and value, in no particular order.",
      examples: [[["content-type", "application/json"]]],
    }),
    remote_address: orNull(Type.String({ examples: ["203.0.113.7"] }), {
      description:
        "IP address of the sender, according to `--trust-proxy`; null for events stored by old versions.",
    }),
    size_bytes: Type.Integer({ description: "Size of the body.", examples: [14] }),
    sha256: Type.String({
      description: "SHA-256 of the body, in hexadecimal digits.",
      examples: ["c7be1ed902fb8dd4d48997c6452f5d7e509fbcdbe2808b16bcf4edce4c07d14e"],
    }),
    provider_event_id: orNull(Type.String({ examples: ["evt_1042"] }), {
      description: "ID of the event at the sender; null if unknown.",
    }),
    duplicates: Type.Integer({ description: "Number of repeats that were accepted and not stored." }),
    payload: Type.Unknown({
      description:
        "Body of the request: parsed if it is JSON, otherwise as text; null above 1 MiB, see `raw_url`.",
      examples: [{ order: 1042 }],
    }),
    payload_base64: orNull(Type.String({ examples: ["eyJvcmRlciI6MTA0Mn0="] }), {
      description: "Exact bytes of the body as base64; null above 1 MiB, see `raw_url`.",
    }),
    raw_url: Type.Optional(
      Type.String({
        description: "Path of the exact bytes of a body above 1 MiB; missing for smaller ones.",
        examples: [],
      }),
    ),
    deliveries: Type.Array(EventDelivery, {
      description:
        "Deliveries to endpoints, oldest first; empty when the event is forwarded to `target_url`.",
      examples: [[]],
    }),
    attempt_log: Type.Array(EventAttempt, {
      description: `Last ${ATTEMPTS_STORED_MAX} attempts to deliver the event, including replays, oldest first.`,
    }),
  },
  { $id: "CaughtEvent" },
);
export type CaughtEvent = Static<typeof CaughtEvent>;

function timestamp(description: string) {
  return Type.String({
    maxLength: ID_LENGTH_MAX,
    description: `${description} RFC 3339.`,
    examples: ["2026-03-10T12:00:00Z"],
    errorMessage: "must be an RFC 3339 time such as 2026-03-10T12:00:00Z",
  });
}

/** Query of an export of events. */
export const EventExportQuery = Type.Object(
  {
    since: Type.Optional(timestamp("Start of the time of receipt, inclusive, as")),
    until: Type.Optional(timestamp("End of the time of receipt, exclusive, as")),
    cursor: Type.Optional(
      Type.String({ maxLength: 500, description: "`X-Next-Cursor` of the previous page.", examples: [] }),
    ),
  },
  { $id: "EventExportQuery" },
);
export type EventExportQuery = Static<typeof EventExportQuery>;

/** Filter by type. */
export const OfType = Type.String({
  minLength: 1,
  maxLength: FIELD_LENGTH_MAX,
  errorMessage: `must be a string of 1 to ${FIELD_LENGTH_MAX} characters`,
});

/** Query of a list of events. */
export const EventQuery = Type.Object(
  {
    ...pageQuery(EVENTS_LIMIT).properties,
    provider: Type.Optional(ProviderName),
    status: Type.Optional(EventStatusName),
    event_type: Type.Optional(OfType),
    verification: Type.Optional(VerificationName),
    since: Type.Optional(timestamp("Start of the time of receipt, inclusive, as")),
    until: Type.Optional(timestamp("End of the time of receipt, exclusive, as")),
    q: Type.Optional(
      text({
        min: 1,
        max: SEARCH_LENGTH_MAX,
        examples: ["in_1042"],
        description: "Text that must appear in a header or in the body, case-insensitive.",
      }),
    ),
    details: Type.Optional(flag({ description: "Whether to add `method` and `preview` to each event." })),
  },
  { $id: "EventQuery" },
);
export type EventQuery = Static<typeof EventQuery>;

/** A page of events, newest first. */
export const EventPage = Type.Object(
  {
    events: Type.Array(EventItem),
    cursor: orNull(Type.String(), {
      description: "Cursor of the next page; null on the last page.",
      examples: [null],
    }),
    partial: Type.Optional(
      Type.Literal(true, {
        description: "Present when older events are not searched yet. Continue with `cursor`.",
        examples: [],
      }),
    ),
  },
  { $id: "EventPage" },
);
export type EventPage = Static<typeof EventPage>;

/** Body of an acknowledgement. */
export const EventAckBody = named("EventAckBody", {
  result: oneOf(ACK_RESULTS),
  response_status: Type.Optional(
    integer({
      min: 100,
      max: 599,
      description: "HTTP status with which the event was processed.",
      examples: [200],
    }),
  ),
  error: Type.Optional(
    text({
      min: 1,
      max: ACK_ERROR_LENGTH_MAX,
      description: "Reason of the failure.",
      examples: ["no response"],
    }),
  ),
  duration_ms: Type.Optional(
    duration({
      unit: "ms",
      min: 0,
      max: ACK_DURATION_MS_MAX,
      examples: [31],
    }),
  ),
});
export type EventAckBody = Static<typeof EventAckBody>;

/** Query of a deletion of events. */
export const EventsDeleteQuery = Type.Object(
  {
    before: Type.String({
      maxLength: ID_LENGTH_MAX,
      errorMessage: "must be an ISO 8601 time such as 2026-03-10T12:00:00Z",
      description: "Time before which received events are deleted, as ISO 8601 with an offset or Z.",
      examples: ["2026-03-10T12:00:00Z"],
    }),
  },
  { $id: "EventsDeleteQuery" },
);

/** Response to a deletion of events. */
export const EventsDeleted = Type.Object({ deleted_count: Type.Integer() }, { $id: "EventsDeleted" });
export type EventsDeleted = Static<typeof EventsDeleted>;

/** A confirmed subscription. */
export const EventConfirmed = named("EventConfirmed", {
  status: oneOf(["confirmed"]),
});
export type EventConfirmed = Static<typeof EventConfirmed>;

/** Response to a replay to endpoints. */
export const EventReplayQueued = Type.Object(
  {
    status: Type.Literal("queued"),
    deliveries: Type.Array(
      Type.Object({
        relay_id: uuid(),
        endpoint_id: Type.String({ examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"] }),
      }),
      { description: "New deliveries." },
    ),
  },
  { $id: "EventReplayQueued" },
);
export type EventReplayQueued = Static<typeof EventReplayQueued>;

/** Response to a replay that the target responded to. */
export const EventReplayed = Type.Object(
  {
    status: oneOf(["replayed", "failed"]),
    response_status: Type.Integer({ description: "HTTP status of the target's response.", examples: [200] }),
  },
  { $id: "EventReplayed" },
);
export type EventReplayed = Static<typeof EventReplayed>;
