import { type Static, Type } from "@sinclair/typebox";
import { BULK_STATUSES, BULK_TERMS } from "../../../kernel/background/bulk.ts";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { NextCursor, pageQuery } from "../../../kernel/http/requests/pagination.ts";
import { SIGNING_SECRET_LENGTH_MAX } from "../../../kernel/outbound/signing.ts";

/** Deliveries on a page unless asked otherwise. */
export const LIST_LIMIT = 50;
/** Most bytes of a body that is no JSON: in base64 it leaves room for the rest in a request of a mebibyte. */
export const BODY_BYTES_MAX = 750_000;
/** Retries that a delivery can ask for. */
export const RETRIES_MAX = 20;
/** Shortest and longest time that an attempt can be given. */
export const TIMEOUT_MS_MIN = 1_000;
export const TIMEOUT_MS_MAX = 30_000;
/** Longest `deduplication_id`. */
export const DEDUPLICATION_ID_LENGTH_MAX = 255;
/** Longest grace of a secret after a rotation, in hours. */
export const GRACE_HOURS_MAX = 168;
/** The grace unless given. */
export const GRACE_HOURS = 24;
/** Larger moments are none that a clock shows. */
const MOMENT_MS_MAX = 253_402_300_799_999;

/** A field with a moment. */
export function moment(description: string) {
  return Type.Integer({
    minimum: 0,
    maximum: MOMENT_MS_MAX,
    errorMessage: "must be a moment in epoch milliseconds, such as 1795232116928",
    description,
    examples: [1_795_232_116_928],
  });
}

/** Waits before retries. */
export const RetrySchedule = Type.Array(Type.String(), {
  maxItems: RETRIES_MAX,
  errorMessage: `must be a list of at most ${RETRIES_MAX} waits such as 5s, 5m or 2h`,
  description:
    "The wait before each retry, at most 24h each and 7d together. `1s`, `5s`, `25s` unless given.",
  examples: [["5s", "5m", "2h"]],
});

/** The time that an attempt may take. */
export const TimeoutMs = Type.Integer({
  minimum: TIMEOUT_MS_MIN,
  maximum: TIMEOUT_MS_MAX,
  errorMessage: `must be an integer from ${TIMEOUT_MS_MIN} to ${TIMEOUT_MS_MAX}`,
  description: "The time that an attempt may take. 15000 unless given.",
  examples: [10_000],
});

/** Headers that a user gives. */
export const GivenHeaders = Type.Record(Type.String(), Type.String({ errorMessage: "must be a text" }), {
  errorMessage: "must be an object of header names to texts",
  description:
    "`X-Svc-*`, `webhook-id`, `webhook-timestamp`, `webhook-signature`, `Host`, `Content-Length`, `Connection` and `Transfer-Encoding` are ignored: the delivery has its own.",
});

/** Body of a delivery to be scheduled. */
export const RelayBody = named("RelayBody", {
  target_url: Type.String({
    minLength: 1,
    errorMessage: "must be an http or https URL such as https://example.com/hooks",
    examples: ["https://example.com/hooks"],
  }),
  method: oneOf(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  delay: Type.Optional(
    Type.String({
      pattern: "^[0-9]+[smhd]$",
      errorMessage: "must be a number of seconds, minutes, hours or days such as 0s, 90s, 15m, 12h or 3d",
      description: "From 0s, which is at once, to 30d. Required, unless `at` is given.",
      examples: ["15m"],
    }),
  ),
  at: Type.Optional(
    moment("Epoch milliseconds, at most 30 days ahead; what is past is now. Instead of `delay`."),
  ),
  payload: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        errorMessage: "must be a JSON object",
        description: "Sent as the body, except with GET; `{}` unless given.",
      },
    ),
  ),
  body_base64: Type.Optional(
    Type.String({
      errorMessage: "must be base64",
      description: `Instead of \`payload\`: at most ${BODY_BYTES_MAX} bytes, sent as they are. \`Content-Type\` is for \`headers\`.`,
      examples: ["PGludm9pY2UvPg=="],
    }),
  ),
  headers: Type.Optional(GivenHeaders),
  retry_schedule: Type.Optional(RetrySchedule),
  timeout_ms: Type.Optional(TimeoutMs),
  deduplication_id: Type.Optional(
    text({
      min: 1,
      max: DEDUPLICATION_ID_LENGTH_MAX,
      description:
        "Within 24 hours of the first, another request with it gets the first delivery, for nothing.",
      examples: ["invoice-1042-reminder"],
    }),
  ),
});
export type RelayBody = Static<typeof RelayBody>;

const RelayId = Type.String({
  format: "uuid",
  description: "Also sent as `X-Svc-Delivery-Id` and `webhook-id`.",
});

/** A delivery's id, where it is not what the receiver gets as `webhook-id`. */
export const RELAY_ID = Type.String({ format: "uuid" });

/** Answer to a scheduled delivery. */
export const RelayScheduled = named("RelayScheduled", {
  relay_id: Type.String({ format: "uuid" }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  status: Type.Literal("scheduled"),
});
export type RelayScheduled = Static<typeof RelayScheduled>;

/** Path of a delivery. */
export const RelayParams = Type.Object({ relay_id: Type.String({ maxLength: 64 }) });

/** Every status of a delivery. */
export const RELAY_STATUSES = ["scheduled", "delivering", "delivered", "failed", "cancelled"] as const;
const RelayStatus = oneOf(RELAY_STATUSES);
/** How far a delivery has come. From its first attempt on it is `delivering` until it ends. */
export type RelayStatus = Static<typeof RelayStatus>;

/** Answer to a request whose `deduplication_id` has made a delivery before: that one, as it is now. */
export const RelayDeduplicated = named("RelayDeduplicated", {
  relay_id: Type.String({ format: "uuid" }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  status: RelayStatus,
  deduplicated: Type.Literal(true),
});
export type RelayDeduplicated = Static<typeof RelayDeduplicated>;

/** Every origin of a delivery. */
export const RELAY_KINDS = ["scheduled", "pulse", "endpoint"] as const;
/** Where a delivery comes from: a request of the user's, a monitor, or a message to an endpoint. */
export type RelayKind = (typeof RELAY_KINDS)[number];

/** Every kind of failure that a list can be narrowed to. */
export const RELAY_FAILURES = ["timeout", "network", "http", "blocked", "disabled"] as const;
/** Why a delivery failed: no answer in time, none at all, one that says no, an address that is refused. */
export type RelayFailure = (typeof RELAY_FAILURES)[number];

const EventType = Type.String({
  minLength: 1,
  maxLength: 128,
  errorMessage: "must be a text of 1 to 128 characters",
  description: "What is delivered, such as `monitor.down`.",
});

/** What a list, or a resend of many, can be narrowed to. */
export const NARROWED = {
  event_type: Type.Optional(EventType),
  since: Type.Optional(moment("Epoch milliseconds: created at this moment or later.")),
  until: Type.Optional(moment("Epoch milliseconds: created before this moment.")),
};

function id(description: string) {
  return Type.String({ maxLength: 64, errorMessage: "must be an id", description, examples: [] });
}

/** What a list of deliveries can be narrowed to besides. */
const OF_MESSAGES = {
  endpoint_id: Type.Optional(id("Only those to this endpoint.")),
  message_id: Type.Optional(id("Only those of this message.")),
};

/** Query of a list of deliveries. */
export const RelayQuery = named("RelayQuery", {
  filter: Type.Optional(
    Type.Literal("pulse", {
      errorMessage: "must be pulse, or be left out for all deliveries",
      description: "`pulse`: only notifications of monitors.",
    }),
  ),
  status: Type.Optional(RelayStatus),
  ...OF_MESSAGES,
  ...NARROWED,
  schedule_id: Type.Optional(Type.String({ maxLength: 64, description: "Only runs of this schedule." })),
  error: Type.Optional(
    oneOf(RELAY_FAILURES, {
      errorMessage: `must be one of ${RELAY_FAILURES.join(", ")}`,
      description: "Only failed ones, by why they did.",
    }),
  ),
  ...pageQuery(LIST_LIMIT).properties,
});
export type RelayQuery = Static<typeof RelayQuery>;

const DELIVERY = {
  relay_id: RelayId,
  kind: oneOf(RELAY_KINDS, {}),
  event: orNull(
    Type.String({ description: "Of a monitor's notification, or a message.", examples: ["monitor.down"] }),
  ),
  monitor_id: orNull(Type.String({ format: "uuid" })),
  schedule_id: orNull(Type.String({ description: "Whose run it is." }), { examples: [null] }),
  endpoint_id: orNull(Type.String(), { description: "Of a message's delivery.", examples: [null] }),
  message_id: orNull(Type.String({ description: "The same." }), { examples: [null] }),
  target_url: Type.String({ examples: ["https://example.com/hooks"] }),
  method: Type.String({ examples: ["POST"] }),
  status: RelayStatus,
  attempts: Type.Integer({ description: "Attempts that have ended." }),
  response_status: orNull(Type.Integer({ description: "Of the last attempt.", examples: [200] })),
  error: orNull(Type.String({ description: "What went wrong in the last attempt." }), { examples: [null] }),
  scheduled_for: Type.Integer({ description: "Epoch milliseconds." }),
  finished_at: orNull(Type.Integer({ description: "Epoch milliseconds." }), { examples: [null] }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
};

/** A delivery, as lists show it. */
export const RelayItem = named("RelayItem", DELIVERY);
export type RelayItem = Static<typeof RelayItem>;

/** A page of deliveries, newest first. */
export const RelayPage = named("RelayPage", { deliveries: Type.Array(RelayItem), cursor: NextCursor });
export type RelayPage = Static<typeof RelayPage>;

const Headers = Type.Record(Type.String(), Type.String(), {
  examples: [{ "content-type": "application/json" }],
});

/** An attempt at a delivery. */
export const RelayAttempt = named("RelayAttempt", {
  attempt: Type.Integer({ description: "From 1." }),
  started_at: Type.Integer({ description: "Epoch milliseconds." }),
  duration_ms: Type.Integer({ examples: [84] }),
  response_status: orNull(Type.Integer({ examples: [200] })),
  error: orNull(Type.String(), { examples: [null] }),
  request_headers: orNull(Headers, {
    description: "As they were sent, with `[secret]` for what may be one.",
  }),
  response_headers: orNull(Headers, { description: "At most 4 KiB of them; null without an answer." }),
  response_body: orNull(Type.String({ description: "The first 4 KiB.", examples: ["ok"] })),
  response_body_base64: Type.Optional(
    Type.String({ description: "Instead of `response_body`, where that is no UTF-8.", examples: [] }),
  ),
  remote_address: orNull(Type.String({ description: "Who answered.", examples: ["203.0.113.7"] })),
});
export type RelayAttempt = Static<typeof RelayAttempt>;

/** A delivery with each of its attempts. */
export const Relay = named("Relay", {
  ...DELIVERY,
  retry_schedule: orNull(RetrySchedule, { description: "Null: the usual one.", examples: [null] }),
  timeout_ms: orNull(TimeoutMs, { description: "Null: the usual one.", examples: [null] }),
  attempt_log: Type.Array(RelayAttempt),
});
export type Relay = Static<typeof Relay>;

/** Answer to a cancellation. */
export const RelayCancelled = named("RelayCancelled", {
  relay_id: Type.String({ format: "uuid" }),
  status: Type.Literal("cancelled"),
});
export type RelayCancelled = Static<typeof RelayCancelled>;

/** Answer to the resend of one delivery. */
export const RelayResent = named("RelayResent", {
  relay_id: Type.String({ format: "uuid" }),
  status: Type.Literal("scheduled"),
});
export type RelayResent = Static<typeof RelayResent>;

/** Body of a resend of many. */
export const RelayResendBody = named("RelayResendBody", {
  status: Type.Optional(
    Type.Literal("failed", { errorMessage: "must be failed: others have nothing left to send" }),
  ),
  endpoint_id: OF_MESSAGES.endpoint_id,
  ...NARROWED,
  ...BULK_TERMS,
});
export type RelayResendBody = Static<typeof RelayResendBody>;

const Matched = {
  matched: Type.Integer({ description: "How many are resent, 10,000 at most.", examples: [42] }),
  more: Type.Optional(Type.Literal(true, { description: "More would match.", examples: [] })),
};

/** What a resend of many would send. */
export const RelayResendMatched = named("RelayResendMatched", Matched);
export type RelayResendMatched = Static<typeof RelayResendMatched>;

const ResendId = Type.String({ examples: ["rsn_01a1fc2c30c071d9bf080e3cb4a7b202"] });

/** Answer to a resend of many. */
export const RelayResendStarted = named("RelayResendStarted", { resend_id: ResendId, ...Matched });
export type RelayResendStarted = Static<typeof RelayResendStarted>;

/** Path of a resend of many. */
export const RelayResendParams = Type.Object({ resend_id: Type.String({ maxLength: 64 }) });

/** How far a resend of many has come. */
export const RelayResend = named("RelayResend", {
  resend_id: ResendId,
  status: oneOf(BULK_STATUSES, {}),
  ...Matched,
  resent: Type.Integer({ description: "So many have been sent again.", examples: [42] }),
  skipped: Type.Integer({
    description: "Once it has ended: those that matched and were not sent.",
    examples: [0],
  }),
  error: orNull(Type.String({ description: "Why it ended early." }), { examples: [null] }),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
  finished_at: orNull(Type.Integer({ description: "Epoch milliseconds." }), { examples: [null] }),
});
export type RelayResend = Static<typeof RelayResend>;

/** A signing secret, in clear. */
export const SigningSecret = Type.String({ examples: ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"] });

/** A project's signing secret. */
export const RelaySecret = named("RelaySecret", {
  secret: SigningSecret,
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
  previous: Type.Array(Type.Object({ expires_at: Type.Integer({ description: "Epoch milliseconds." }) }), {
    description: "Older ones that deliveries are signed with as well, the newest first.",
  }),
});
export type RelaySecret = Static<typeof RelaySecret>;

/** Body of a rotation. */
export const RelaySecretRotateBody = named("RelaySecretRotateBody", {
  grace_hours: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: GRACE_HOURS_MAX,
      default: GRACE_HOURS,
      errorMessage: `must be an integer from 0 to ${GRACE_HOURS_MAX}`,
      description: "How long deliveries are signed with the old one as well.",
    }),
  ),
  secret: Type.Optional(
    Type.String({
      maxLength: SIGNING_SECRET_LENGTH_MAX,
      errorMessage: "must be whsec_ and the base64 of 24 to 64 bytes",
      description: "One of your own: `whsec_` and the base64 of 24 to 64 bytes. A new one unless given.",
      examples: [],
    }),
  ),
});
export type RelaySecretRotateBody = Static<typeof RelaySecretRotateBody>;

/** Answer to a rotation. */
export const RelaySecretRotated = named("RelaySecretRotated", {
  secret: SigningSecret,
  previous_expires_at: Type.Integer({ description: "Epoch milliseconds." }),
});
export type RelaySecretRotated = Static<typeof RelaySecretRotated>;
