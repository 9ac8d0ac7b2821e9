import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../../kernel/data/schema.ts";
import { SIGNING_SECRET_LENGTH_MAX } from "../domain.ts";
import { ALGORITHMS, ENCODINGS, SECRET_ENCODINGS, TIMESTAMP_FORMATS } from "../ingestion/signatures.ts";

/** Longest template of what is signed: the longest known one has 30 characters. */
const TEMPLATE_LENGTH_MAX = 500;
/** Longest name of a header or of a pair, and longest prefix or separator: several times any sender's. */
const NAME_LENGTH_MAX = 100;
/** Longest JSON pointer. */
const POINTER_LENGTH_MAX = 200;
/** Largest tolerance of a dated signature: a day. */
const TOLERANCE_SECONDS_MAX = 86_400;
/** Longest answer of a bucket's own: senders look at a word or two. */
export const RESPONSE_LENGTH_MAX = 4 * 1024;
/** How long repeats can be noticed: a week, in which senders have ended their retries. */
const DEDUPLICATE_HOURS_MAX = 168;
/** How long a replaced secret can hold beside the new one. */
export const PREVIOUS_DAYS_MAX = 30;

/** Whether what is not authentic is kept. */
const VERIFICATION_MODES = ["mark", "reject"] as const;
/** What a bucket can take in; any other method is ignored. */
export const METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] as const;
/** What it takes in unless it says so. */
export const USUAL_METHODS: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];
/** Types of an answer of a bucket's own: none of them is a page. */
export const RESPONSE_TYPES = ["text/plain", "application/json", "application/xml", "text/xml"] as const;
const INVALID_STATUSES = [200, 400, 401, 403] as const;
const OVERLOAD_STATUSES = [200, 429, 503] as const;

function statusOf<const Codes extends readonly number[]>(codes: Codes, description: string) {
  return Type.Union(
    codes.map((code) => Type.Literal(code)),
    { errorMessage: `must be one of ${codes.join(", ")}`, description },
  ) as unknown as ReturnType<typeof Type.Unsafe<Codes[number]>>;
}

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

/** How a sender signs that no preset is for. */
export const Signature = named("BucketSignature", {
  header: HEADER_NAME,
  algorithm: oneOf(ALGORITHMS),
  encoding: Type.Optional(oneOf(ENCODINGS)),
  prefix: Type.Optional(SHORT),
  separator: Type.Optional(SHORT),
  pairs: Type.Optional(oneOf([",", ";"])),
  signature_key: Type.Optional(SHORT),
  timestamp_key: Type.Optional(SHORT),
  timestamp_header: Type.Optional(HEADER_NAME),
  timestamp_format: Type.Optional(oneOf(TIMESTAMP_FORMATS)),
  tolerance_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: TOLERANCE_SECONDS_MAX,
      errorMessage: `must be an integer from 0 to ${TOLERANCE_SECONDS_MAX}`,
      description: "How old or early a dated signature may be; 0: any age. 300 when left out.",
    }),
  ),
  template: Type.Optional(
    text({
      min: 1,
      max: TEMPLATE_LENGTH_MAX,
      examples: ["{timestamp}.{body}"],
      description:
        "What is signed: text with `{body}` once, `{timestamp} {id:<header>} {url} {method} {path}`.",
    }),
  ),
  secret_encoding: Type.Optional(oneOf(SECRET_ENCODINGS)),
  event_id: Type.Optional(SOURCE),
  event_type: Type.Optional(SOURCE),
});
export type Signature = Static<typeof Signature>;

/** What a bucket answers to what it has taken in. */
export const OwnResponse = named("BucketResponse", {
  status: Type.Optional(
    Type.Integer({ minimum: 200, maximum: 299, errorMessage: "must be an integer from 200 to 299" }),
  ),
  content_type: Type.Optional(oneOf(RESPONSE_TYPES)),
  body: Type.Optional(
    orNull(text({ min: 0, max: RESPONSE_LENGTH_MAX, examples: ["ok"] }), {
      errorMessage: `must be a text of at most ${RESPONSE_LENGTH_MAX} bytes, or null for none`,
    }),
  ),
});
export type OwnResponse = Static<typeof OwnResponse>;

/** What a sender asks for before it sends anything. */
export const Challenge = named("BucketChallenge", {
  token: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: SIGNING_SECRET_LENGTH_MAX,
      examples: ["a-token-of-yours"],
      errorMessage: `must be a text of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters`,
      description:
        "Of `meta`, `strava` and `websub`: the verify token that you entered there. Never shown again.",
    }),
  ),
  query: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: NAME_LENGTH_MAX,
      pattern: "^[A-Za-z0-9._~-]*$",
      examples: ["challenge"],
      errorMessage: "must be the name of a query parameter, of letters, digits, and . _ ~ -",
      description: "Of any other sender: the parameter of a GET whose value is answered.",
    }),
  ),
  as: Type.Optional(oneOf(["text", "json"])),
  field: Type.Optional(text({ min: 1, max: NAME_LENGTH_MAX, description: "The member of the JSON." })),
});
export type Challenge = Static<typeof Challenge>;

const Hours = (maximum: number | undefined, minimum: number, description: string) =>
  Type.Integer({
    minimum,
    ...(maximum === undefined ? {} : { maximum }),
    description,
    errorMessage:
      maximum === undefined
        ? `must be an integer of at least ${minimum}`
        : `must be an integer from ${minimum} to ${maximum}`,
  });

const RESETS = ", or null";
const nullable = <S extends Parameters<typeof orNull>[0]>(schema: S, errorMessage: string) =>
  Type.Optional(orNull(schema, { errorMessage: errorMessage + RESETS }));

/** What can be set of a bucket besides its plain terms; null takes a setting back. */
export const SettingsInput = {
  verification_mode: Type.Optional(oneOf(VERIFICATION_MODES)),
  response: Type.Optional(orNull(OwnResponse)),
  invalid_status: Type.Optional(
    Type.Union([...INVALID_STATUSES.map((code) => Type.Literal(code)), Type.Null()], {
      errorMessage: `must be one of ${INVALID_STATUSES.join(", ")}${RESETS}`,
    }),
  ),
  overload_status: Type.Optional(
    statusOf(OVERLOAD_STATUSES, "What a request gets that the bucket has no room for."),
  ),
  previous_signing_secret: nullable(
    Type.String({ minLength: 1, maxLength: SIGNING_SECRET_LENGTH_MAX }),
    `must be a string of 1 to ${SIGNING_SECRET_LENGTH_MAX} characters`,
  ),
  previous_expires_at: nullable(
    Type.String({ maxLength: 64, examples: ["2026-03-10T12:00:00Z"] }),
    "must be an RFC 3339 date-time",
  ),
  deduplicate_hours: Type.Optional(
    Hours(DEDUPLICATE_HOURS_MAX, 0, "How long repeats are noticed; 0: they are not."),
  ),
  retention_hours: nullable(
    Hours(undefined, 1, "How long events are kept; null: as long as the tier has it."),
    "must be an integer of at least 1",
  ),
  methods: Type.Optional(
    Type.Array(oneOf(METHODS), {
      minItems: 1,
      maxItems: METHODS.length,
      uniqueItems: true,
      examples: [["POST"]],
      errorMessage: `must be a list of different ones of ${METHODS.join(", ")}`,
    }),
  ),
  signature: Type.Optional(orNull(Signature)),
  challenge: Type.Optional(orNull(Challenge)),
};
const InputObject = Type.Object(SettingsInput);
export type SettingsInput = Static<typeof InputObject>;

/** The same as a bucket shows it. */
export const SettingsView = {
  verification_mode: oneOf(VERIFICATION_MODES),
  response: orNull(OwnResponse, { examples: [null] }),
  invalid_status: statusOf(INVALID_STATUSES, "What a request gets whose signature does not hold."),
  overload_status: statusOf(OVERLOAD_STATUSES, "What a request gets that the bucket has no room for."),
  previous_expires_at: orNull(Type.String({ format: "date-time" }), {
    description: "Until then the secret before this one holds too.",
    examples: [null],
  }),
  deduplicate_hours: Type.Integer({ examples: [0] }),
  retention_hours: orNull(Type.Integer(), {
    description: "Null: as long as the tier has it.",
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
    }),
    { examples: [null] },
  ),
};
const ViewObject = Type.Object(SettingsView);
export type SettingsView = Static<typeof ViewObject>;
