import { type Static, Type } from "@sinclair/typebox";
import { name, named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { URL_LENGTH_MAX } from "../../kernel/outbound/target.ts";
import { SettingsInput, SettingsView } from "./buckets/settings-schema.ts";
import {
  ANSWER_BYTES_KEPT,
  ATTEMPT_KINDS,
  ATTEMPTS_KEPT,
  BUCKET_STATES,
  DELIVERIES,
  EVENT_STATUSES,
  INGEST_STATUSES,
  PROVIDERS,
  SIGNING_SECRET_LENGTH_MAX,
  VERIFICATIONS,
} from "./domain.ts";
import { FACT_LENGTH_MAX } from "./ingestion/extracted-fields.ts";

/** Events on a page unless asked otherwise. */
export const EVENTS_LIMIT = 20;
/** Longest text that is searched for: longer than any id. */
const SEARCH_LENGTH_MAX = 100;
/** Longest id that is looked up: ours are far shorter. */
export const ID_LENGTH_MAX = 64;
const BucketId = Type.String({ examples: ["brave-otter-314159"] });
/** An event, in examples. */
export const EVENT_ID = "evt_1jjbpshg000";

const State = oneOf(BUCKET_STATES);
const EventStatusName = oneOf(EVENT_STATUSES);
const VerificationName = oneOf(VERIFICATIONS);
const ProviderOrNull = orNull(oneOf(PROVIDERS));
/** A moment, as answers have it. */
export const Time = Type.String({ format: "date-time", description: "RFC 3339, UTC." });

/** A provider as callers give it: which names there are is a rule with a code of its own. */
export const ProviderName = Type.String({
  maxLength: ID_LENGTH_MAX,
  errorMessage: `must be one of ${PROVIDERS.join(", ")}`,
  description: `One of ${PROVIDERS.join(", ")}.`,
  examples: ["stripe"],
});

const TargetUrl = orNull(
  Type.String({ maxLength: URL_LENGTH_MAX, examples: ["https://example.com/webhooks"] }),
  {
    errorMessage: "must be an https URL such as https://example.com/webhooks",
    description: "Where events are sent on to: an https URL. It may be null, or be left out, with `pull`.",
  },
);

const Delivery = oneOf(DELIVERIES, {
  errorMessage: `must be ${DELIVERIES.join(" or ")}`,
  description:
    "`push`: events are sent on to `target_url`. `pull`: they wait until somebody fetches the stream and acknowledges them.",
});

const SigningSecret = orNull(Type.String({ minLength: 1, maxLength: SIGNING_SECRET_LENGTH_MAX }), {
  errorMessage: `must be a string of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters, or null for none`,
  description: "The provider's signing secret. It is never shown again.",
});

const GivenName = name("Unique in the project.");
const Name = orNull(GivenName, {
  errorMessage: `${GivenName["errorMessage"]}, or null for none`,
  description: "Unique in the project.",
});

/** Path of a bucket. */
export const BucketParams = Type.Object({
  bucket_id: Type.String({ ...BucketId, maxLength: ID_LENGTH_MAX }),
});

/** Path of a bucket for the public: any text, since a bucket that does not exist is no error there. */
export const PublicBucketParams = Type.Object({
  bucket_id: BucketId,
});

/** Path of an event. */
export const EventParams = Type.Object({
  ...BucketParams.properties,
  event_id: Type.String({ maxLength: ID_LENGTH_MAX, examples: [EVENT_ID] }),
});

/** What a new bucket is made of. */
export const BucketCreateBody = Type.Object(
  {
    target_url: Type.Optional(TargetUrl),
    delivery: Type.Optional(Delivery),
    provider: Type.Optional(orNull(ProviderName, { errorMessage: "must be a string" })),
    signing_secret: Type.Optional(SigningSecret),
    name: Type.Optional(Name),
    ...SettingsInput,
  },
  { $id: "BucketCreateBody" },
);
export type BucketCreateBody = Static<typeof BucketCreateBody>;

/** A change of a bucket: what is left out stays. */
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

/** A bucket. */
export const Bucket = Type.Object(
  {
    id: BucketId,
    name: orNull(Type.String({ examples: ["shop"] })),
    ingest_url: Type.String({
      description: "The public URL to hand to a provider, as this server is reached by the request.",
      examples: ["https://ninefold.example.com/v1/catch/brave-otter-314159"],
    }),
    target_url: orNull(Type.String({ examples: ["https://example.com/webhooks"] })),
    provider: ProviderOrNull,
    has_signing_secret: Type.Boolean(),
    ...SettingsView,
    state: State,
    delivery: oneOf(DELIVERIES, {}),
    created_at: Time,
    updated_at: Time,
    events: Type.Object(
      { pending: Type.Integer(), delivered: Type.Integer(), failed: Type.Integer() },
      { description: "How many events the bucket holds, by status." },
    ),
    hint: Type.Optional(
      Type.String({
        description: "Only while it is paused and not `pull`: how to set it live.",
        examples: [],
      }),
    ),
  },
  { $id: "Bucket" },
);
export type Bucket = Static<typeof Bucket>;

/** Query of a list of buckets. */
export const BucketQuery = Type.Object(
  { name: Type.Optional(name("Only the bucket that was given this name.")) },
  { $id: "BucketQuery" },
);

/** The buckets of a project. */
export const BucketList = Type.Object({ buckets: Type.Array(Bucket) }, { $id: "BucketList" });

/** Answer to an inbound request. */
export const Ingested = Type.Object(
  {
    status: oneOf(INGEST_STATUSES),
    verification: VerificationName,
    event_id: Type.Optional(Type.String({ description: "Of an accepted event.", examples: [EVENT_ID] })),
  },
  { $id: "Ingested" },
);
export type Ingested = Static<typeof Ingested>;

const EventType = orNull(Type.String({ examples: ["invoice.paid"] }), {
  description: "What the sender calls this kind of event; null where it does not say.",
});

/** An event, as lists show it. */
export const EventItem = Type.Object(
  {
    id: Type.String({ description: "Sorts by time of receipt.", examples: [EVENT_ID] }),
    bucket_id: BucketId,
    provider: ProviderOrNull,
    event_type: EventType,
    status: EventStatusName,
    verification: VerificationName,
    received_at: Time,
    attempts: Type.Integer({ description: "Tries to deliver it so far." }),
    response_status: orNull(Type.Integer({ examples: [200] }), {
      description: "What the target answered last.",
    }),
    error: orNull(Type.String(), { description: "Why it is not delivered.", examples: [null] }),
    delivered_at: orNull(Time),
  },
  { $id: "EventItem" },
);
export type EventItem = Static<typeof EventItem>;

/** A try to deliver an event. */
export const EventAttempt = named("EventAttempt", {
  at: Time,
  kind: oneOf(ATTEMPT_KINDS, {}),
  duration_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [503] })),
  error: orNull(Type.String({ examples: ["the target answered with status 503"] })),
  response_body: orNull(Type.String({ examples: ["upstream is down"] }), {
    description: `The first ${ANSWER_BYTES_KEPT} bytes of the answer, as text. Null without an answer.`,
  }),
});
export type EventAttempt = Static<typeof EventAttempt>;

/** An event with everything that was received, and what became of it. */
export const CaughtEvent = Type.Object(
  {
    ...EventItem.properties,
    method: Type.String({ examples: ["POST"] }),
    path: Type.String({ description: "What followed the bucket's own path.", examples: [""] }),
    query: Type.String({ description: "As it was sent, without its question mark.", examples: [""] }),
    headers: Type.Record(Type.String(), Type.String()),
    headers_list: Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }), {
      description: "The same as pairs of name and value, not in the order in which they were sent.",
      examples: [[["content-type", "application/json"]]],
    }),
    remote_address: orNull(Type.String({ examples: ["203.0.113.7"] }), {
      description:
        "Where it came from, as `--trust-proxy` says; null for what came in before this was noted.",
    }),
    size_bytes: Type.Integer({ examples: [14] }),
    provider_event_id: orNull(Type.String({ examples: ["evt_1042"] }), {
      description: "The sender's own id of it; null where it does not say.",
    }),
    duplicates: Type.Integer({ description: "Repeats of it that were answered and not stored." }),
    payload: Type.Unknown({
      description: "The body: parsed where it is JSON, otherwise as text.",
      examples: [{ order: 1042 }],
    }),
    payload_base64: Type.String({
      description: "The exact bytes of the body.",
      examples: ["eyJvcmRlciI6MTA0Mn0="],
    }),
    attempt_log: Type.Array(EventAttempt, {
      description: `The last ${ATTEMPTS_KEPT} tries to deliver it, replays among them, in their order.`,
    }),
  },
  { $id: "CaughtEvent" },
);
export type CaughtEvent = Static<typeof CaughtEvent>;

function Moment(description: string) {
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
    since: Type.Optional(Moment("Events received at this time or later.")),
    until: Type.Optional(Moment("Events received before this time.")),
    cursor: Type.Optional(
      Type.String({ maxLength: 500, description: "Of `X-Next-Cursor` of the page before.", examples: [] }),
    ),
  },
  { $id: "EventExportQuery" },
);
export type EventExportQuery = Static<typeof EventExportQuery>;

/** The type of events that are asked for. */
export const OfType = Type.String({
  minLength: 1,
  maxLength: FACT_LENGTH_MAX,
  errorMessage: `must be a text of 1 to ${FACT_LENGTH_MAX} characters`,
});

/** Query of a list of events. */
export const EventQuery = Type.Object(
  {
    ...pageQuery(EVENTS_LIMIT).properties,
    provider: Type.Optional(ProviderName),
    status: Type.Optional(EventStatusName),
    event_type: Type.Optional(OfType),
    verification: Type.Optional(VerificationName),
    since: Type.Optional(Moment("Events received at this time or later.")),
    until: Type.Optional(Moment("Events received before this time.")),
    q: Type.Optional(
      text({
        min: 1,
        max: SEARCH_LENGTH_MAX,
        examples: ["in_1042"],
        description: "Only events that have this text in a header or in the body, in upper or lower case.",
      }),
    ),
  },
  { $id: "EventQuery" },
);
export type EventQuery = Static<typeof EventQuery>;

/** A page of events, newest first. */
export const EventPage = Type.Object(
  {
    events: Type.Array(EventItem),
    cursor: orNull(Type.String(), { description: "Null on the last page.", examples: [null] }),
    partial: Type.Optional(
      Type.Literal(true, {
        description: "With `q`: older events have not been looked at yet. Go on with `cursor`.",
        examples: [],
      }),
    ),
  },
  { $id: "EventPage" },
);
export type EventPage = Static<typeof EventPage>;

/** Query of a deletion of events. */
export const EventsDeleteQuery = Type.Object(
  {
    before: Type.String({
      maxLength: ID_LENGTH_MAX,
      errorMessage: "must be an ISO 8601 time such as 2026-03-10T12:00:00Z",
      description: "Events received before this time are deleted. ISO 8601, with an offset or Z.",
      examples: ["2026-03-10T12:00:00Z"],
    }),
  },
  { $id: "EventsDeleteQuery" },
);

/** Answer to a deletion of events. */
export const EventsDeleted = Type.Object({ deleted_count: Type.Integer() }, { $id: "EventsDeleted" });
export type EventsDeleted = Static<typeof EventsDeleted>;

/** Answer to a replay that the target has answered. */
export const EventReplayed = Type.Object(
  {
    status: oneOf(["replayed", "failed"]),
    response_status: Type.Integer({ description: "What the target answered.", examples: [200] }),
  },
  { $id: "EventReplayed" },
);
export type EventReplayed = Static<typeof EventReplayed>;
