import { type SchemaOptions, type Static, type TSchema, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { MOMENT_WANTED } from "../../kernel/time/date-time.ts";
import {
  ALLOWED_IPS_MAX,
  CLIENT_IP_LENGTH_MAX,
  DURATION_MS_MAX,
  DURATION_MS_MIN,
  ENVIRONMENT_LENGTH_MAX,
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  GRACE_HOURS_MIN,
  METADATA_LENGTH_MAX,
  NAME_LENGTH_MAX,
  OWNER_ID_LENGTH_MAX,
  PREFIX_LENGTH_MAX,
  RATELIMIT_MAX,
  RATELIMIT_NAME_LENGTH_MAX,
  RATELIMITS_MAX,
  SCOPE_LENGTH_MAX,
  SCOPES_MAX,
} from "./domain.ts";

/** Longest id that is looked up: ours are far shorter. */
const ID_LENGTH_MAX = 64;
/** A project's id, as examples show it. */
export const PROJECT_ID = "proj_8Zk2vQ1mX7cB4nL9pS3t";
/** Longest text that is read as a date. */
const DATE_TIME_LENGTH_MAX = 64;

/** Keys on a page unless asked otherwise. */
export const KEYS_LIMIT = 20;

/** A moment in an answer. */
export const DateTime = Type.String({ format: "date-time" });

/** May be left out; null means the same. */
export function optional<Schema extends TSchema>(schema: Schema, options?: SchemaOptions) {
  return Type.Optional(orNull(schema, options));
}

/** Path of a key. */
export const KeyParams = Type.Object({
  id: Type.String({ maxLength: ID_LENGTH_MAX, errorMessage: "must be the id of a key, a UUID" }),
});

/** Path of a project's keys. */
export const KeyProjectParams = Type.Object({
  id: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be a project id, such as proj_…",
    examples: [PROJECT_ID],
  }),
});

const OwnerId = Type.String({
  pattern: `^[A-Za-z0-9_.:@-]{1,${OWNER_ID_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${OWNER_ID_LENGTH_MAX} letters, digits or characters of _.:@-`,
  examples: ["acme"],
});
const MeterId = Type.String({
  pattern: "^[a-zA-Z0-9_-]{1,64}$",
  errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
  examples: ["acme"],
});
/** What a rate limit is called. */
export const RatelimitName = Type.String({
  pattern: `^[a-z0-9_.-]{1,${RATELIMIT_NAME_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${RATELIMIT_NAME_LENGTH_MAX} lower-case letters, digits or characters of _.-`,
  examples: ["requests"],
});

/** An integer in bounds, with the words that say so. */
export function integer(minimum: number, maximum: number, options: SchemaOptions = {}) {
  const errorMessage = `must be an integer from ${minimum} to ${maximum}`;
  return Type.Integer({ minimum, maximum, errorMessage, ...options });
}

/** A list of at most so many. */
export function listOf<Schema extends TSchema>(
  schema: Schema,
  maxItems: number,
  options: SchemaOptions = {},
) {
  return Type.Array(schema, { maxItems, errorMessage: `must be a list of at most ${maxItems}`, ...options });
}

const RATELIMIT = {
  name: RatelimitName,
  limit: integer(1, RATELIMIT_MAX, { description: "Tokens of a full bucket.", examples: [100] }),
  duration_ms: integer(DURATION_MS_MIN, DURATION_MS_MAX, {
    description: "How long an empty bucket takes to fill; it fills continuously.",
    examples: [60_000],
  }),
};
const AUTO = { description: "Whether every verification takes a token; else only one that names the limit." };
const SHARED = {
  description: "With `owner`, all keys of the owner in the key's project draw on one bucket.",
  errorMessage: "must be key or owner",
};
const Ratelimit = named("KeyRatelimit", {
  ...RATELIMIT,
  auto: Type.Boolean(AUTO),
  shared: oneOf(["key", "owner"], SHARED),
});
export type Ratelimit = Static<typeof Ratelimit>;

const REFILL = {
  every: oneOf(["day", "month"], { errorMessage: "must be day or month", examples: ["month"] }),
  amount: integer(1, Number.MAX_SAFE_INTEGER, {
    description: "What the uses left are raised to, where fewer are left.",
    examples: [10_000],
  }),
  day: Type.Optional(
    integer(1, 31, {
      description: "Of the month, its last one if it is shorter; 1 unless given. Not with `day`.",
      examples: [1],
    }),
  ),
};
const Uses = named("KeyUses", {
  remaining: integer(0, Number.MAX_SAFE_INTEGER, { examples: [10_000] }),
  refill: Type.Optional(Type.Object(REFILL, { description: "At 00:00 UTC." })),
});
export type Uses = Static<typeof Uses>;

/** What can be said of a key at its creation, and changed later. */
const CHANGEABLE = {
  environment: optional(text({ min: 1, max: ENVIRONMENT_LENGTH_MAX }), {
    errorMessage: `must be a text of 1 to ${ENVIRONMENT_LENGTH_MAX} characters`,
    examples: ["live"],
  }),
  metadata: optional(Type.Record(Type.String(), Type.String()), {
    errorMessage: "must be an object of texts",
    description: `At most ${METADATA_LENGTH_MAX} characters as JSON.`,
    examples: [{ customer: "42" }],
  }),
  expires_at: optional(Type.String({ maxLength: DATE_TIME_LENGTH_MAX, format: "date-time" }), {
    errorMessage: MOMENT_WANTED,
  }),
  owner_id: optional(OwnerId, { description: "Your customer, whose key it is." }),
  meter_id: optional(MeterId, { description: "The meter that uses of the key are paid from." }),
  enabled: optional(Type.Boolean({ errorMessage: "must be true or false" }), {
    description: "False pauses the key; true unless said otherwise.",
    examples: [true],
  }),
  ratelimits: optional(
    listOf(
      Type.Object({
        ...RATELIMIT,
        auto: Type.Optional(Type.Boolean({ ...AUTO, default: true, errorMessage: "must be true or false" })),
        shared: Type.Optional(oneOf(["key", "owner"], { ...SHARED, default: "key" })),
      }),
      RATELIMITS_MAX,
    ),
    { description: "Token buckets, kept in memory: full after a restart." },
  ),
  uses: optional(Type.Object({ ...Uses.properties, refill: optional(Type.Object(REFILL)) }), {
    description: "How often the key can still be used; null for any number of times.",
  }),
  allowed_ips: optional(
    listOf(text({ min: 1, max: CLIENT_IP_LENGTH_MAX }), ALLOWED_IPS_MAX, { examples: [["203.0.113.0/24"]] }),
    {
      description: "Addresses and ranges (CIDR) that it may be used from; none for any.",
    },
  ),
};

const Name = text({ min: 1, max: NAME_LENGTH_MAX, examples: ["Warehouse"] });
const Scopes = Type.Array(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
  minItems: 1,
  maxItems: SCOPES_MAX,
  errorMessage: `must be a list of 1 to ${SCOPES_MAX} texts`,
  examples: [["orders:read"]],
});

/** Body of a key's creation. */
export const KeyCreateBody = named("KeyCreateBody", {
  prefix: Type.String({
    pattern: `^[a-z0-9_]{1,${PREFIX_LENGTH_MAX}}$`,
    errorMessage: `must be 1 to ${PREFIX_LENGTH_MAX} lower-case letters, digits or underscores`,
    description: "What the secret begins with. With `sm` the key works as a Bearer credential of this API.",
    examples: ["acme_live"],
  }),
  name: Name,
  scopes: Scopes,
  ...CHANGEABLE,
});
export type KeyCreateBody = Static<typeof KeyCreateBody>;

/** Body of a change: what is left out stays as it is. */
export const KeyPatchBody = named("KeyPatchBody", {
  name: Type.Optional(Name),
  scopes: Type.Optional(Scopes),
  ...CHANGEABLE,
});
export type KeyPatchBody = Static<typeof KeyPatchBody>;

/** Body of a revocation by owner. */
export const KeysRevokeBody = named("KeysRevokeBody", { owner_id: OwnerId });

/** Answer to a revocation by owner. */
export const KeysRevoked = named("KeysRevoked", {
  revoked: Type.Integer({ description: "Keys that this call has ended.", examples: [3] }),
  more: Type.Boolean({ description: "Whether there are more: then call again.", examples: [false] }),
});
export type KeysRevoked = Static<typeof KeysRevoked>;

/** Body of a rotation. */
export const KeyRotateBody = named("KeyRotateBody", {
  grace_hours: Type.Optional(
    Type.Number({
      minimum: GRACE_HOURS_MIN,
      maximum: GRACE_HOURS_MAX,
      default: GRACE_HOURS_DEFAULT,
      errorMessage: `must be a number from ${GRACE_HOURS_MIN} to ${GRACE_HOURS_MAX}`,
      description: "How long the old key still works.",
    }),
  ),
});

const TERMS = {
  prefix: Type.String({ examples: ["sm"] }),
  name: Type.String({ examples: ["Checkout service"] }),
  scopes: Type.Array(Type.String({ examples: ["meter:write"] })),
  environment: Type.Optional(Type.String({ examples: ["production"] })),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
  project_id: orNull(Type.String({ examples: [PROJECT_ID] }), {
    description: "The only project that the key works in; null for a key of the account.",
  }),
  created_at: DateTime,
  expires_at: orNull(DateTime),
  owner_id: orNull(Type.String({ examples: ["acme"] })),
  meter_id: orNull(Type.String({ examples: ["acme"] })),
  enabled: Type.Boolean(),
  ratelimits: Type.Array(Ratelimit),
  uses: orNull(Uses, { description: "Null: any number of times." }),
  allowed_ips: Type.Array(Type.String({ examples: ["203.0.113.0/24"] }), {
    description: "Empty: any address.",
  }),
};

/** A new key with its secret. */
export const KeyCreated = named("KeyCreated", {
  key_id: Type.String({ format: "uuid" }),
  secret: Type.String({ description: "Shown here and never again.", examples: ["sm_4fJ9…_1c2d3e4f"] }),
  ...TERMS,
});
export type KeyCreated = Static<typeof KeyCreated>;

const ITEM = {
  id: Type.String({ format: "uuid" }),
  masked_secret: Type.String({ examples: ["sm_..."] }),
  last4: Type.String({ description: "The secret's last four characters.", examples: ["3e4f"] }),
  ...TERMS,
  revoked_at: orNull(DateTime, { examples: [null] }),
  last_used_at: orNull(DateTime),
};

/** A key in a list. */
export const KeyItem = named("KeyItem", ITEM);
export type KeyItem = Static<typeof KeyItem>;

/** One key. */
export const Key = named("Key", {
  ...ITEM,
  last_used_ip: Type.Optional(Type.String({ description: "As given to verify.", examples: ["203.0.113.7"] })),
  last_used_ua: Type.Optional(Type.String({ description: "As given to verify.", examples: ["curl/8.5.0"] })),
});
export type Key = Static<typeof Key>;

/** A page of keys, newest first. */
export const KeyPage = named("KeyPage", {
  keys: Type.Array(KeyItem),
  has_more: Type.Boolean({ examples: [false] }),
  next_cursor: orNull(DateTime, {
    description: "The `created_at` of the last item. Null on the last page.",
    examples: [null],
  }),
});
export type KeyPage = Static<typeof KeyPage>;

/** Answer to a rotation. */
export const KeyRotated = named("KeyRotated", {
  new_key_id: Type.String({ format: "uuid" }),
  new_secret: Type.String({ description: "Shown here and never again.", examples: ["sm_7hK2…_5a6b7c8d"] }),
  old_key_id: Type.String({ format: "uuid" }),
  old_expires_at: DateTime,
  grace_hours: Type.Number({ examples: [24] }),
});
export type KeyRotated = Static<typeof KeyRotated>;

/** Answer to a revocation. */
export const KeyRevoked = named("KeyRevoked", {
  key_id: Type.String({ format: "uuid" }),
  revoked_at: DateTime,
  status: Type.Literal("revoked"),
});
export type KeyRevoked = Static<typeof KeyRevoked>;

/** The query of a key's usage. */
export const KeyUsageQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      maxLength: DATE_TIME_LENGTH_MAX,
      description: "Cut to the beginning of its hour or day, UTC; 24 hours before `to` unless given.",
    }),
  ),
  to: Type.Optional(
    Type.String({ maxLength: DATE_TIME_LENGTH_MAX, description: "Exclusive; now unless given." }),
  ),
  granularity: Type.Optional(
    oneOf(["hour", "day"], { errorMessage: "must be hour or day", default: "hour" }),
  ),
});

/** How often a key was used. */
export const KeyUsage = named("KeyUsage", {
  from: DateTime,
  to: DateTime,
  granularity: oneOf(["hour", "day"], {}),
  data: Type.Array(
    Type.Object({
      from: DateTime,
      total: Type.Integer({ examples: [12] }),
      valid: Type.Integer({ examples: [9] }),
      errors: Type.Record(Type.String(), Type.Integer(), { examples: [{ rate_limited: 3 }] }),
    }),
    { description: "Hours or days with uses, oldest first." },
  ),
});
export type KeyUsage = Static<typeof KeyUsage>;

/** The query of the list: a page, of some keys. */
export const KeysQuery = Type.Object({
  ...pageQuery(KEYS_LIMIT).properties,
  owner_id: Type.Optional(OwnerId),
  environment: Type.Optional(text({ min: 1, max: ENVIRONMENT_LENGTH_MAX })),
});
