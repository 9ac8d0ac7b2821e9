import { type Static, Type } from "@sinclair/typebox";
import {
  clearable,
  dateTime,
  duration,
  integer,
  listOf,
  named,
  oneOf,
  orNull,
  refersTo,
  retrySchedule,
  text,
} from "../../kernel/data/schema.ts";
import { SIGNING_SECRET_LENGTH_MAX, TARGETS_MAX } from "./domain.ts";
import { ALGORITHMS, ENCODINGS, SECRET_ENCODINGS, TIMESTAMP_FORMATS } from "./providers/signatures.ts";

/** Longest template of the signed content: the longest known one has 30 characters. */
const TEMPLATE_LENGTH_MAX = 500;
/** Longest name of a header or of a pair, and longest prefix or separator: several times any sender's. */
const NAME_LENGTH_MAX = 100;
/** Longest name of a host (RFC 1035). */
const ORIGIN_LENGTH_MAX = 253;
/** Origins that may send to one bucket: senders have one or two. */
const ORIGINS_MAX = 20;
/** Names of headers that a bucket forwards: senders have a few of their own. */
const FORWARDED_HEADERS_MAX = 20;
/** Longest JSON pointer. */
const POINTER_LENGTH_MAX = 200;
/** Largest tolerance of a dated signature: a day. */
const TOLERANCE_SECONDS_MAX = 86_400;
/** Longest body of a bucket's `response`: senders read a few words at most. */
export const RESPONSE_LENGTH_MAX = 4 * 1024;
/** Longest deduplication: a week, in which senders finish their retries. */
const DEDUPLICATE_HOURS_MAX = 168;
/** Longest time for which a replaced secret is valid. */
export const PREVIOUS_DAYS_MAX = 30;

/** Whether events with invalid signatures are stored (`mark`) or rejected. */
const VERIFICATION_MODES = ["mark", "reject"] as const;
/** Methods that a bucket can accept; others are ignored. */
export const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] as const;
/** Methods that a bucket accepts by default. */
export const DEFAULT_METHODS: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
/** Content types of a bucket's `response`: browsers render none of them as a page. */
export const RESPONSE_TYPES = ["text/plain", "application/json", "application/xml", "text/xml"] as const;
const INVALID_STATUSES = [200, 400, 401, 403] as const;
const OVERLOAD_STATUSES = [200, 429, 503] as const;

const HEADER_NAME = Type.String({
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]*$",
  errorMessage: `must be the name of a header, of at most ${NAME_LENGTH_MAX} characters`,
  examples: ["X-Signature"],
});
const SHORT = text({ min: 1, max: NAME_LENGTH_MAX });
const SOURCE = Type.String({
  minLength: 1,
  maxLength: POINTER_LENGTH_MAX,
  errorMessage: `must be header:name or a JSON pointer such as /data/id, of at most ${POINTER_LENGTH_MAX} characters`,
  description: "`header:name`, or a JSON pointer into the body.",
  examples: ["/id"],
});

/** Signature recipe of a sender without a preset, in a request. */
const SignatureBody = named("BucketSignatureBody", {
  header: { ...HEADER_NAME, description: "Name of the signature's header." },
  algorithm: oneOf(ALGORITHMS, {
    description:
      "For `ed25519` and `ecdsa-p256-sha256` the secret is the public key (raw, SPKI or PEM). With `token` the header is the secret.",
  }),
  encoding: Type.Optional(oneOf(ENCODINGS, { description: "Encoding of the signature. Default: `hex`." })),
  prefix: Type.Optional({ ...SHORT, description: "Prefix of each signature, such as `sha256=`." }),
  separator: Type.Optional({ ...SHORT, description: "Separator between signatures. Default: a comma." }),
  pairs: Type.Optional(oneOf([",", ";"], { description: "Separator of a header that is a list of `k=v`." })),
  signature_key: Type.Optional({ ...SHORT, description: "With `pairs`: key of the signature." }),
  timestamp_key: Type.Optional({ ...SHORT, description: "With `pairs`: key of the timestamp." }),
  timestamp_header: Type.Optional({ ...HEADER_NAME, description: "Name of the timestamp's header." }),
  timestamp_format: Type.Optional(
    oneOf(TIMESTAMP_FORMATS, { description: "Format of the timestamp. Default: `unix`." }),
  ),
  tolerance_seconds: Type.Optional(
    duration({
      unit: "seconds",
      min: 0,
      max: TOLERANCE_SECONDS_MAX,
      description: "Tolerance of a signature's timestamp, in seconds; 0 for any age. Default: 300.",
    }),
  ),
  template: Type.Optional(
    text({
      min: 1,
      max: TEMPLATE_LENGTH_MAX,
      examples: ["{timestamp}.{body}"],
      description:
        "Signed content: text that contains `{body}` once, and `{timestamp}`, `{id:<header>}`, `{url}`, `{method}` or `{path}` as needed.",
    }),
  ),
  secret_encoding: Type.Optional(
    oneOf(SECRET_ENCODINGS, { description: "Encoding of the secret. Default: `text`." }),
  ),
  event_id: Type.Optional({
    ...SOURCE,
    description:
      "Source of the event's ID: `header:name`, or a JSON pointer into the body, of up to 8 levels.",
  }),
  event_type: Type.Optional({ ...SOURCE, description: "Source of the event's type, like `event_id`." }),
});
/** The same as responses show it. */
const Signature = named("BucketSignature", SignatureBody.properties);
export type Signature = Static<typeof Signature>;

/** Response of a bucket to accepted requests. */
export const BucketResponse = named("BucketResponse", {
  status: Type.Optional(integer({ min: 200, max: 299 })),
  content_type: Type.Optional(oneOf(RESPONSE_TYPES)),
  body: Type.Optional(
    orNull(text({ min: 0, max: RESPONSE_LENGTH_MAX, examples: ["ok"] }), {
      errorMessage: `must be a string of at most ${RESPONSE_LENGTH_MAX} bytes, or null for none`,
    }),
  ),
});
export type BucketResponse = Static<typeof BucketResponse>;

/** Challenge that a sender requires before it sends events. */
export const Challenge = named("BucketChallenge", {
  token: Type.Optional(
    Type.String({
      writeOnly: true,
      minLength: 1,
      maxLength: SIGNING_SECRET_LENGTH_MAX,
      examples: ["a-token-of-yours"],
      errorMessage: `must be a string of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters`,
      description:
        "Verify token of `meta`, `strava` and `websub`, as you entered it there. It is not returned.",
    }),
  ),
  query: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: NAME_LENGTH_MAX,
      pattern: "^[A-Za-z0-9._~-]*$",
      examples: ["challenge"],
      errorMessage: "must be the name of a query parameter, of letters, digits, and . _ ~ -",
      description:
        "For other senders: query parameter of a GET request that the bucket returns the value of.",
    }),
  ),
  pointer: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: POINTER_LENGTH_MAX,
      examples: ["/challenge"],
      errorMessage: `must be a JSON pointer such as /challenge, of at most ${POINTER_LENGTH_MAX} characters`,
      description:
        "For other senders: JSON pointer to the value in the body of a POST request that the bucket returns. Without `when`, the body must have no other member.",
    }),
  ),
  when: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        errorMessage: "must be an object",
        description:
          "With `pointer`: condition on the body that challenges fulfill and events do not, like the `filter` of a target.",
        examples: [{ type: "challenge" }],
      },
    ),
  ),
  origins: Type.Optional(
    Type.Array(
      Type.String({
        minLength: 1,
        maxLength: ORIGIN_LENGTH_MAX,
        pattern: "^(\\*|[A-Za-z0-9._-]*)$",
        errorMessage: "must be the name of a host such as eventgrid.azure.net, or *",
      }),
      {
        minItems: 1,
        maxItems: ORIGINS_MAX,
        uniqueItems: true,
        errorMessage: `must be a list of 1 to ${ORIGINS_MAX} different names of hosts`,
        examples: [["eventgrid.azure.net"]],
        description:
          "For senders of CloudEvents: values of `WebHook-Request-Origin` that may send to the bucket; `*` for any.",
      },
    ),
  ),
  as: Type.Optional(oneOf(["text", "json"], { default: "text" })),
  field: Type.Optional(
    text({
      min: 1,
      max: NAME_LENGTH_MAX,
      description: "Name of the member that contains the value, with `as: json`.",
    }),
  ),
});
export type Challenge = Static<typeof Challenge>;

/** What a bucket forwards of a request in addition to its body. */
export const Forward = named("BucketForward", {
  method: Type.Optional(
    Type.Boolean({
      description:
        "Whether events are forwarded with the method of their request, in place of POST. GET and HEAD have no body.",
    }),
  ),
  path: Type.Optional(
    Type.Boolean({
      description: "Whether the path below that of the bucket is appended to the path of the target.",
      examples: [true],
    }),
  ),
  query: Type.Optional(
    Type.Boolean({ description: "Whether the query is appended to that of the target.", examples: [true] }),
  ),
  headers: Type.Optional(
    Type.Array(
      Type.String({
        minLength: 1,
        maxLength: NAME_LENGTH_MAX,
        pattern: "^[A-Za-z0-9!#$%&'+.^_`|~-]*\\*?$",
        errorMessage: `must be the name of a header, of at most ${NAME_LENGTH_MAX} characters, or its start followed by *`,
      }),
      {
        maxItems: FORWARDED_HEADERS_MAX,
        errorMessage: `must be a list of at most ${FORWARDED_HEADERS_MAX} names of headers`,
        examples: [["x-*"]],
        description:
          "Names of headers that are forwarded, in addition to the type and encoding of the content and those of the provider; a `*` at the end stands for any rest. Headers that may contain a secret, such as `Authorization`, are forwarded only by their full name; headers of the connection, `X-Svc-*` and `webhook-*` never.",
      },
    ),
  ),
});
export type Forward = Static<typeof Forward>;

/** An endpoint that receives a bucket's events. */
export const BucketTarget = named("BucketTarget", {
  endpoint_id: Type.String({
    ...refersTo("endpoints"),
    maxLength: NAME_LENGTH_MAX,
    errorMessage: "must be the ID of an endpoint of this project",
    examples: ["ep_01a1fc2c30c071d9bf080e3cb4a7b202"],
  }),
  filter: Type.Optional(
    orNull(
      Type.Object(
        {},
        {
          additionalProperties: true,
          errorMessage: "must be an object",
          description:
            "Condition on the body, in addition to the endpoint's own: field names mapped to required values, or operators such as `$gte` and `$or`.",
        },
      ),
      { examples: [null] },
    ),
  ),
});
export type BucketTarget = Static<typeof BucketTarget>;

const Retention = duration({
  unit: "hours",
  min: 1,
  description: "Retention of events, in hours, at most the tier's; null for the tier's.",
});

/** Further settings of a bucket; null restores the default. */
export const SettingsInput = {
  verification_mode: Type.Optional(
    oneOf(VERIFICATION_MODES, {
      description:
        "`mark` (default) stores requests with an invalid signature; `reject` does not, and they are free of charge.",
    }),
  ),
  response: Type.Optional(
    orNull(BucketResponse, {
      description:
        "Response to stored requests, as `status`, `content_type` and `body`; null for the default JSON.",
    }),
  ),
  invalid_status: clearable(
    oneOf(INVALID_STATUSES, {
      description:
        "Status of responses to requests with an invalid signature. Default: 200; 401 for `discord`.",
    }),
  ),
  overload_status: Type.Optional(
    oneOf(OVERLOAD_STATUSES, {
      description:
        "Status of responses to `rate_limited`, `panic_mode` and `insufficient_balance`. Default: 200; with 429 or 503, providers retry.",
    }),
  ),
  previous_signing_secret: clearable(
    Type.String({
      writeOnly: true,
      minLength: 1,
      maxLength: SIGNING_SECRET_LENGTH_MAX,
      description: "Previous secret, which is also valid until `previous_expires_at`.",
      errorMessage: `must be a string of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters`,
    }),
  ),
  previous_expires_at: clearable(
    Type.String({
      maxLength: 64,
      description: `End of the validity of the previous secret, as RFC 3339, at most ${PREVIOUS_DAYS_MAX} days ahead.`,
      examples: ["2026-03-10T12:00:00Z"],
      errorMessage: "must be an RFC 3339 date-time",
    }),
  ),
  deduplicate_hours: Type.Optional(
    duration({
      unit: "hours",
      min: 0,
      max: DEDUPLICATE_HOURS_MAX,
      description:
        "Time for which a repeated event ID is detected and free of charge, in hours. Default: 0, disabled.",
    }),
  ),
  retention_hours: clearable(Retention),
  methods: Type.Optional(
    Type.Array(oneOf(METHODS), {
      minItems: 1,
      maxItems: METHODS.length,
      uniqueItems: true,
      examples: [["POST"]],
      errorMessage: `must be a list of different ones of ${METHODS.join(", ")}`,
      description: `Methods of requests that are stored; others are \`ignored\`. Default: ${DEFAULT_METHODS.join(", ")}.`,
    }),
  ),
  signature: Type.Optional(
    orNull(SignatureBody, { description: "Recipe for signatures of a sender without a preset." }),
  ),
  challenge: Type.Optional(
    orNull(Challenge, { description: "Challenge that the sender requires before it sends events." }),
  ),
  auto_confirm: Type.Optional(
    Type.Boolean({
      description:
        "With the provider `sns`: whether a subscription of the topic is confirmed as soon as its message arrives. Default: false.",
    }),
  ),
  forward: Type.Optional(
    orNull(Forward, {
      description:
        "Parts of the request that are forwarded, in addition to the body, to `target_url` and `targets`; null for none.",
    }),
  ),
  targets: Type.Optional(
    listOf(BucketTarget, {
      max: TARGETS_MAX,
      of: "endpoints",
      description: `Endpoints that receive the events, in place of \`target_url\`: at most ${TARGETS_MAX}, each with a delivery of its own. \`[]\` for none.`,
    }),
  ),
  retry_schedule: clearable(
    retrySchedule(
      "With a schedule, 410 and addresses that are not allowed end the retries, delays vary by a tenth, and `Retry-After` can extend them. Default: exactly `1s`, `5s`, `25s`, whatever the failure.",
    ),
  ),
};
const InputObject = Type.Object(SettingsInput);
export type SettingsInput = Static<typeof InputObject>;

/** Further settings as the API shows them. */
export const SettingsView = {
  verification_mode: oneOf(VERIFICATION_MODES),
  response: orNull(BucketResponse, { examples: [null] }),
  invalid_status: oneOf(INVALID_STATUSES, {
    description: "Status of responses to requests with an invalid signature.",
  }),
  overload_status: oneOf(OVERLOAD_STATUSES, {
    description: "Status of responses to requests beyond the bucket's limits.",
  }),
  previous_expires_at: orNull(dateTime(), {
    description: "Time when the previous secret expires.",
    examples: [null],
  }),
  deduplicate_hours: Type.Integer({ examples: [0] }),
  retention_hours: orNull(Type.Integer(), {
    description: "Retention of events, in hours; null for the tier's retention.",
    examples: [null],
  }),
  methods: Type.Array(oneOf(METHODS), { examples: [["POST", "PUT", "PATCH", "DELETE"]] }),
  signature: orNull(Signature, { examples: [null] }),
  challenge: orNull(
    Type.Object({
      has_token: Type.Boolean(),
      query: orNull(Type.String()),
      as: oneOf(["text", "json"]),
      field: orNull(Type.String()),
      pointer: Type.Optional(Type.String()),
      when: Type.Optional(Type.Object({}, { additionalProperties: true })),
      origins: Type.Optional(Type.Array(Type.String())),
    }),
    { examples: [null] },
  ),
  auto_confirm: Type.Boolean({
    description: "Whether subscriptions to a topic of `sns` are confirmed automatically.",
    examples: [false],
  }),
  forward: orNull(Forward, {
    description: "Parts of the request that are forwarded in addition to the body; null for none.",
    examples: [null],
  }),
  targets: Type.Array(BucketTarget, {
    description: "Endpoints that receive the events; empty when `target_url` does.",
    examples: [[]],
  }),
  retry_schedule: orNull(Type.Array(Type.String()), {
    description: "Delay before each retry of a forward; null for the default: `1s`, `5s`, `25s`.",
    examples: [null],
  }),
};
const ViewObject = Type.Object(SettingsView);
export type SettingsView = Static<typeof ViewObject>;
