import { type Static, type TInteger, Type } from "@sinclair/typebox";
import { BULK_IDS_MAX, BULK_STATUSES, BULK_TERMS } from "../../../kernel/bulk/bulk.ts";
import {
  duration,
  givenEpochMs,
  idParams,
  listOf,
  NextCursor,
  named,
  OwnerId,
  oneOf,
  orNull,
  retrySchedule,
  text,
  textDuration,
  uuid,
} from "../../../kernel/data/schema.ts";
import { pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { SIGNING_SECRET_LENGTH_MAX } from "../../../kernel/outbound/signing.ts";
import {
  DEDUPLICATE_HOURS_MAX,
  DELAY_EXPECTED,
  NOTIFICATION,
  RELAY_FAILURES,
  RELAY_KINDS,
} from "../domain.ts";

/** Default number of items on a page. */
export const LIST_LIMIT = 50;
/** Largest decoded `body_base64`, in bytes: in base64 it leaves space for the other fields in a request of 1 MiB. */
export const BODY_BYTES_MAX = 750_000;
/** Shortest and longest `timeout_ms`. */
export const TIMEOUT_MS_MIN = 1_000;
export const TIMEOUT_MS_MAX = 30_000;
/** Longest `deduplication_id`. */
export const DEDUPLICATION_ID_LENGTH_MAX = 255;
/** Longest `grace_hours`. */
export const GRACE_HOURS_MAX = 168;
/** Default of `grace_hours`. */
export const GRACE_HOURS = 24;
export const RetrySchedule = retrySchedule(
  "Default: `1s`, `5s`, `25s`; to endpoints, the Standard Webhooks schedule.",
);

export const TimeoutMs = duration({
  unit: "ms",
  min: TIMEOUT_MS_MIN,
  max: TIMEOUT_MS_MAX,
  description: "Timeout of an attempt, in milliseconds. Default: 15000.",
  examples: [10_000],
});

/** Headers set by the user. */
export const CustomHeaders = Type.Record(Type.String(), Type.String({ errorMessage: "must be a string" }), {
  errorMessage: "must be an object that maps header names to strings",
  description:
    "Request headers: at most 50, each at most 4096 printable ASCII characters; stored encrypted. `X-Svc-*`, `X-Ninefold-Hops`, `webhook-*`, `Host`, `Content-Length` and headers of the connection are ignored, and named in `warnings`.",
});

/** A URL that outcomes are sent to. */
function callbackUrl(description: string) {
  return Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/outcomes",
    description,
    examples: ["https://example.com/outcomes"],
  });
}

/** URLs that the outcome of a delivery is sent to. */
export const CALLBACK_URLS = {
  callback_url: callbackUrl(
    "URL that receives the outcome of the delivery, once it is delivered or has failed, as a signed message.",
  ),
  failure_callback_url: callbackUrl(
    "URL that receives the outcome of a failed delivery, in place of `callback_url`.",
  ),
};

/** The same as they are shown. */
export const SHOWN_CALLBACK_URLS = {
  callback_url: orNull(Type.String(), {
    description:
      "URL that receives the outcome: its origin and `/[secret]` if its path or query may contain a secret; null for none.",
    examples: [null],
  }),
  failure_callback_url: orNull(Type.String(), {
    description: "URL that receives the outcome of a failed delivery, likewise; null for none.",
    examples: [null],
  }),
};

/** Body of a delivery to be scheduled. */
export const RelayBody = named("RelayBody", {
  target_url: Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/hooks",
    description: "URL of the request: `http` or `https`, at most 2048 characters.",
    examples: ["https://example.com/hooks"],
  }),
  method: oneOf(["GET", "POST", "PUT", "PATCH", "DELETE"], { description: "HTTP method of the request." }),
  delay: Type.Optional(
    textDuration({
      errorMessage: DELAY_EXPECTED,
      description:
        "Delay before the first attempt, from `0s` (immediately) to `30d`. Required unless `at` is given.",
      examples: ["15m"],
    }),
  ),
  at: Type.Optional(
    givenEpochMs(
      "Time of the first attempt, in epoch milliseconds, at most 30 days ahead; a past time means now. Replaces `delay`.",
    ),
  ),
  payload: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        errorMessage: "must be a JSON object",
        description: "JSON body of the request, `{}` by default. Not sent with GET.",
      },
    ),
  ),
  body_base64: Type.Optional(
    Type.String({
      errorMessage: "must be base64",
      description: `Body as base64, at most ${BODY_BYTES_MAX} bytes when decoded. Replaces \`payload\`; set \`Content-Type\` in \`headers\`.`,
      examples: ["PGludm9pY2UvPg=="],
    }),
  ),
  headers: Type.Optional(CustomHeaders),
  retry_schedule: Type.Optional(RetrySchedule),
  timeout_ms: Type.Optional(TimeoutMs),
  deduplication_id: Type.Optional(
    text({
      min: 1,
      max: DEDUPLICATION_ID_LENGTH_MAX,
      description:
        "Key that creates only one delivery: for `deduplicate_hours`, further requests with it return the first delivery, free of charge.",
      examples: ["invoice-1042-reminder"],
    }),
  ),
  deduplication: Type.Optional(
    Type.Literal("content", {
      errorMessage: "must be content",
      description:
        "`content` creates only one delivery of the same method, `target_url` and body within `deduplicate_hours`. Replaces `deduplication_id`.",
      examples: [],
    }),
  ),
  deduplicate_hours: Type.Optional(
    duration({
      unit: "hours",
      min: 1,
      max: DEDUPLICATE_HOURS_MAX,
      description:
        "Hours for which `deduplication_id` or `deduplication` creates no second delivery. Default: 24.",
      examples: [24],
    }),
  ),
  callback_url: Type.Optional(CALLBACK_URLS.callback_url),
  failure_callback_url: Type.Optional(CALLBACK_URLS.failure_callback_url),
});
export type RelayBody = Static<typeof RelayBody>;

const RelayId = uuid({
  description: "ID of the delivery, also sent as `X-Svc-Delivery-Id` and `webhook-id`.",
});

/** The id of a message's delivery, whose `webhook-id` is the id of the message. */
export const RELAY_ID = uuid();

export const RelayScheduled = named("RelayScheduled", {
  relay_id: uuid(),
  scheduled_for: Type.Integer({ description: "Time of the first attempt, in epoch milliseconds." }),
  status: Type.Literal("scheduled"),
});
export type RelayScheduled = Static<typeof RelayScheduled>;

/** Path of a delivery. */
export const RelayParams = idParams("relay");

/** Every status of a delivery. */
export const RELAY_STATUSES = ["scheduled", "delivering", "delivered", "failed", "cancelled"] as const;
const RelayStatus = oneOf(RELAY_STATUSES);
type Counts = Record<(typeof RELAY_STATUSES)[number], TInteger>;
/** A delivery is `delivering` from its first attempt until it is finished. */
export type RelayStatus = Static<typeof RelayStatus>;

/** Response to a repeated `deduplication_id`: the first delivery with its current status. */
export const RelayDeduplicated = named("RelayDeduplicated", {
  relay_id: uuid(),
  scheduled_for: Type.Integer({ description: "Time of the first attempt, in epoch milliseconds." }),
  status: RelayStatus,
  deduplicated: Type.Literal(true),
});
export type RelayDeduplicated = Static<typeof RelayDeduplicated>;

const RELAY_FILTERS = [NOTIFICATION, "deliveries"] as const;

const EventType = Type.String({
  minLength: 1,
  maxLength: 128,
  errorMessage: "must be a string of 1 to 128 characters",
  description: "Returns only events of this type, such as `monitor.down`.",
});

/** Longest `q`: the time of a search grows with its length. */
export const SEARCH_LENGTH_MAX = 128;

/** Filters by type and time. */
export const FILTERS = {
  event_type: Type.Optional(EventType),
  since: Type.Optional(givenEpochMs("Start of the creation time, inclusive, in epoch milliseconds.")),
  until: Type.Optional(givenEpochMs("End of the creation time, exclusive, in epoch milliseconds.")),
};

/** Filters of lists, statistics and bulk resends. */
const DELIVERY_FILTERS = {
  ...FILTERS,
  filter: Type.Optional(
    oneOf(RELAY_FILTERS, {
      errorMessage: `must be ${RELAY_FILTERS.join(" or ")}, or be omitted for all deliveries`,
      description:
        "`pulse` includes only alerts: messages to notification channels, and alerts of meters. `deliveries` omits them.",
    }),
  ),
  error: Type.Optional(
    oneOf(RELAY_FAILURES, {
      description: "Only deliveries that failed for this reason.",
    }),
  ),
  response_status: Type.Optional(
    Type.String({
      pattern: "^[1-5]([0-9][0-9]|xx)$",
      errorMessage: "must be an HTTP status such as 503, or a class such as 5xx",
      description: "Only deliveries whose last response has this HTTP status, or a status of this class.",
      examples: ["5xx"],
    }),
  ),
  target_url: Type.Optional(
    Type.String({
      maxLength: 2048,
      errorMessage: "must be a URL of at most 2048 characters",
      description: "Only deliveries to exactly this URL.",
      examples: ["https://example.com/hooks"],
    }),
  ),
};

function id(description: string) {
  return Type.String({ maxLength: 64, errorMessage: "must be an id", description, examples: [] });
}

/** Filters of deliveries to endpoints. */
const OF_MESSAGES = {
  endpoint_id: Type.Optional(id("Only deliveries to this endpoint.")),
  message_id: Type.Optional(id("Only deliveries of this message.")),
};

/** Query of a list of deliveries. */
export const RelayQuery = named("RelayQuery", {
  status: Type.Optional(RelayStatus),
  ...OF_MESSAGES,
  owner_id: Type.Optional(
    Type.Unsafe<string>({ ...OwnerId, description: "Only deliveries of messages to this customer." }),
  ),
  ...DELIVERY_FILTERS,
  schedule_id: Type.Optional(
    Type.String({ maxLength: 64, description: "Only deliveries of this schedule's runs." }),
  ),
  q: Type.Optional(
    text({
      min: 1,
      max: SEARCH_LENGTH_MAX,
      description:
        "Text in the URL, the id, the event type or the body, in upper or lower case. A page can end before it is full: continue with its `cursor`.",
      examples: ["hooks"],
    }),
  ),
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayQuery = Static<typeof RelayQuery>;

/** Query of the statistics of deliveries. */
export const RelayStatsQuery = named("RelayStatsQuery", {
  ...OF_MESSAGES,
  ...DELIVERY_FILTERS,
});
export type RelayStatsQuery = Static<typeof RelayStatsQuery>;

const Counted = Type.Integer({ minimum: 0, examples: [12] });

/** Statistics of deliveries. */
export const RelayStats = named("RelayStats", {
  counts: Type.Object(Object.fromEntries(RELAY_STATUSES.map((status) => [status, Counted])) as Counts, {
    description: "Number of matching deliveries of each status.",
  }),
  alerts: Type.Integer({
    description: "Number of matching alerts; `counts` omits them with `filter=deliveries`.",
    examples: [3],
  }),
  more: Type.Optional(
    Type.Literal(true, {
      description: "Present when a status has older deliveries that were not counted.",
      examples: [],
    }),
  ),
  oldest_at: orNull(Type.Integer(), {
    description: "Time of creation of the oldest counted delivery, in epoch milliseconds; null without one.",
    examples: [1_795_232_116_928],
  }),
  points: Type.Array(
    Type.Object({
      at: Type.Integer({ description: "Start of the interval, in epoch milliseconds." }),
      delivered: Counted,
      failed: Counted,
    }),
    {
      description:
        "Deliveries created in each of 48 equal intervals from `since` to `until`. Default: the last 7 days.",
    },
  ),
});
export type RelayStats = Static<typeof RelayStats>;

const DELIVERY = {
  relay_id: RelayId,
  kind: oneOf(RELAY_KINDS, {
    description:
      "Origin: a request or schedule, a monitor (`pulse`), a message or an inbound event to an endpoint, or the outcome of a delivery (`callback`).",
  }),
  event: orNull(
    Type.String({
      description: "Type of the event; null for scheduled deliveries.",
      examples: ["monitor.down"],
    }),
  ),
  monitor_id: orNull(uuid({ description: "Monitor that sent the notification; null for others." })),
  schedule_id: orNull(Type.String({ description: "Schedule that created the delivery; null for others." }), {
    examples: [null],
  }),
  endpoint_id: orNull(Type.String(), {
    description: "Endpoint that receives a message or an inbound event; null for others.",
    examples: [null],
  }),
  message_id: orNull(Type.String({ description: "Message that is delivered; null for others." }), {
    examples: [null],
  }),
  bucket_id: orNull(
    Type.String({ description: "Bucket of the inbound event that is delivered; null for others." }),
    {
      examples: [null],
    },
  ),
  event_id: orNull(Type.String({ description: "Inbound event that is delivered; null for others." }), {
    examples: [null],
  }),
  callback_of: orNull(uuid({ description: "Delivery whose outcome a callback contains; null for others." }), {
    examples: [null],
  }),
  waiting_for: orNull(
    uuid({
      description:
        "Earlier delivery with the same order key that must be finished first; null if the delivery waits for none.",
    }),
    { examples: [null] },
  ),
  target_url: Type.String({
    description: "URL of the request; of a callback, the origin and `/[secret]` if the rest may be a secret.",
    examples: ["https://example.com/hooks"],
  }),
  method: Type.String({ examples: ["POST"] }),
  status: RelayStatus,
  attempts: Type.Integer({ description: "Number of finished attempts." }),
  response_status: orNull(
    Type.Integer({
      description: "HTTP status of the last response; null without a response.",
      examples: [200],
    }),
  ),
  error: orNull(Type.String({ description: "Error of the last attempt." }), { examples: [null] }),
  scheduled_for: Type.Integer({ description: "Time of the first attempt, in epoch milliseconds." }),
  next_attempt_at: orNull(Type.Integer(), {
    description:
      "Time of the next attempt, in epoch milliseconds; null when the delivery is finished, during an attempt, and when it is not known. In the past while the delivery waits for its endpoint, which is paused or failing.",
    examples: [null],
  }),
  finished_at: orNull(
    Type.Integer({ description: "Time when the delivery was finished, in epoch milliseconds; null before." }),
    { examples: [null] },
  ),
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
};

/** A delivery in a list. */
export const RelayItem = named("RelayItem", DELIVERY);
export type RelayItem = Static<typeof RelayItem>;

/** A page of deliveries, newest first. */
export const RelayPage = named("RelayPage", { deliveries: Type.Array(RelayItem), cursor: NextCursor });
export type RelayPage = Static<typeof RelayPage>;

const Headers = Type.Record(Type.String(), Type.String(), {
  examples: [{ "content-type": "application/json" }],
});

export const RelayAttempt = named("RelayAttempt", {
  attempt: Type.Integer({ description: "Number of the attempt, from 1." }),
  started_at: Type.Integer({ description: "Start of the attempt, in epoch milliseconds." }),
  duration_ms: Type.Integer({ description: "Duration of the attempt, in milliseconds.", examples: [84] }),
  response_status: orNull(
    Type.Integer({ description: "HTTP status of the response; null without a response.", examples: [200] }),
  ),
  error: orNull(Type.String({ description: "Error of the attempt; null on success." }), { examples: [null] }),
  request_headers: orNull(Headers, {
    description: "Headers of the request, with `[secret]` in place of values that may be secret.",
  }),
  response_headers: orNull(Headers, {
    description: "Headers of the response, at most 4 KiB; null without a response.",
  }),
  response_body: orNull(
    Type.String({ description: "First 4 KiB of the response's body.", examples: ["ok"] }),
  ),
  response_body_base64: Type.Optional(
    Type.String({
      description:
        "First 4 KiB of the response's body as base64, when it is not UTF-8. Replaces `response_body`.",
      examples: [],
    }),
  ),
  remote_address: orNull(
    Type.String({ description: "IP address of the server that responded.", examples: ["203.0.113.7"] }),
  ),
});
export type RelayAttempt = Static<typeof RelayAttempt>;

/** A delivery with its attempts. */
export const Relay = named("Relay", {
  ...DELIVERY,
  retry_schedule: orNull(RetrySchedule, {
    description: "Delay before each retry; null for the default.",
    examples: [null],
  }),
  timeout_ms: orNull(TimeoutMs, {
    description: "Timeout of an attempt, in milliseconds; null for the default.",
    examples: [null],
  }),
  ...SHOWN_CALLBACK_URLS,
  attempt_log: Type.Array(RelayAttempt),
});
export type Relay = Static<typeof Relay>;

/** The body that a delivery sends. */
export const RelaySentBody = named("RelaySentBody", {
  body: orNull(Type.String({ examples: ['{"reminder":"trial ends"}'] }), {
    description: "Body of the request; null when it is not stored any more, or is not UTF-8.",
  }),
  body_base64: Type.Optional(
    Type.String({ description: "Body as base64, when it is not UTF-8. Replaces `body`.", examples: [] }),
  ),
  size_bytes: orNull(
    Type.Integer({ description: "Size of the body; null when it is not stored any more.", examples: [25] }),
  ),
});
export type RelaySentBody = Static<typeof RelaySentBody>;

export const RelayCancelled = named("RelayCancelled", {
  relay_id: uuid(),
  status: Type.Literal("cancelled"),
});
export type RelayCancelled = Static<typeof RelayCancelled>;

export const RelayResent = named("RelayResent", {
  relay_id: uuid(),
  status: Type.Literal("scheduled"),
});
export type RelayResent = Static<typeof RelayResent>;

/** Body of a bulk resend. */
export const RelayResendBody = named("RelayResendBody", {
  status: Type.Optional(
    Type.Literal("failed", { errorMessage: "must be failed: the content of other deliveries is deleted" }),
  ),
  relay_ids: Type.Optional(
    listOf(Type.String({ maxLength: 64, examples: ["01a1fc2c-30c0-71d9-bf08-0e3cb4a7b202"] }), {
      min: 1,
      max: BULK_IDS_MAX,
      of: "ids of deliveries",
      description: "IDs of the deliveries to resend. Replaces the other filters.",
    }),
  ),
  endpoint_id: OF_MESSAGES.endpoint_id,
  ...DELIVERY_FILTERS,
  ...BULK_TERMS,
});
export type RelayResendBody = Static<typeof RelayResendBody>;

const Matched = {
  matched: Type.Integer({ description: "Number of deliveries that match, at most 10,000.", examples: [42] }),
  more: Type.Optional(
    Type.Literal(true, { description: "Present when more deliveries match.", examples: [] }),
  ),
};

/** Response to a dry run of a bulk resend. */
export const RelayResendMatched = named("RelayResendMatched", Matched);
export type RelayResendMatched = Static<typeof RelayResendMatched>;

const ResendId = Type.String({ examples: ["rsn_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** Response to a bulk resend. */
export const RelayResendStarted = named("RelayResendStarted", { resend_id: ResendId, ...Matched });
export type RelayResendStarted = Static<typeof RelayResendStarted>;

/** Body of the recovery of an endpoint. */
export const RelayRecoverBody = named("RelayRecoverBody", {
  since: givenEpochMs(
    "Earliest time at which the messages were accepted, in epoch milliseconds. Messages of more than 7 days ago are not sent: whether they were delivered is not stored any more.",
  ),
  until: Type.Optional(
    givenEpochMs("Time before which the messages were accepted, in epoch milliseconds. Default: now."),
  ),
  ...BULK_TERMS,
});
export type RelayRecoverBody = Static<typeof RelayRecoverBody>;

/** Path of the recovery of an endpoint. */
export const RelayRecoverParams = idParams("endpoint");

/** Path of a bulk resend. */
export const RelayResendParams = idParams("resend");

/** The progress of a bulk resend. */
export const RelayResend = named("RelayResend", {
  resend_id: ResendId,
  kind: Type.Optional(
    Type.Literal("recover", {
      description: "Present when it sends an endpoint the messages that it missed.",
      examples: [],
    }),
  ),
  status: oneOf(BULK_STATUSES, {}),
  ...Matched,
  resent: Type.Integer({ description: "Number of deliveries resent.", examples: [42] }),
  skipped: Type.Integer({
    description:
      "Number of matches that were not sent, once the resend is finished: another request had sent them, their payload is deleted, or the resend was stopped.",
    examples: [0],
  }),
  error: orNull(Type.String({ description: "Reason why the resend stopped early." }), { examples: [null] }),
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
  finished_at: orNull(
    Type.Integer({ description: "Time when the resend was finished, in epoch milliseconds; null before." }),
    { examples: [null] },
  ),
});
export type RelayResend = Static<typeof RelayResend>;

/** A signing secret, in clear. */
export const SigningSecret = Type.String({ examples: ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"] });

/** A project's signing secret. */
export const RelaySecret = named("RelaySecret", {
  secret: SigningSecret,
  created_at: Type.Integer({ description: "Time of creation, in epoch milliseconds." }),
  previous: Type.Array(
    Type.Object({
      expires_at: Type.Integer({ description: "Time when the secret expires, in epoch milliseconds." }),
    }),
    { description: "Older secrets that deliveries are also signed with, newest first." },
  ),
});
export type RelaySecret = Static<typeof RelaySecret>;

/** Body of a rotation. */
export const RelaySecretRotateBody = named("RelaySecretRotateBody", {
  grace_hours: Type.Optional(
    duration({
      unit: "hours",
      min: 0,
      max: GRACE_HOURS_MAX,
      default: GRACE_HOURS,
      description: "Time for which deliveries are also signed with the old secret, in hours.",
    }),
  ),
  secret: Type.Optional(
    Type.String({
      maxLength: SIGNING_SECRET_LENGTH_MAX,
      errorMessage: "must be whsec_ and the base64 of 24 to 64 bytes",
      description: "Secret to use: `whsec_` and the base64 of 24 to 64 bytes. Default: a generated one.",
      examples: [],
    }),
  ),
});
export type RelaySecretRotateBody = Static<typeof RelaySecretRotateBody>;

export const RelaySecretRotated = named("RelaySecretRotated", {
  secret: SigningSecret,
  previous_expires_at: Type.Integer({
    description: "Time when the previous secret expires, in epoch milliseconds.",
  }),
});
export type RelaySecretRotated = Static<typeof RelaySecretRotated>;
