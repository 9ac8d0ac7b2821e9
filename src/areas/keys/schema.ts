import { type SchemaOptions, type Static, type TSchema, Type } from "@sinclair/typebox";
import { MOMENT_WANTED } from "../../kernel/date-time.ts";
import { named, oneOf, orNull, text } from "../../kernel/schema.ts";
import {
  CLIENT_IP_LENGTH_MAX,
  ENVIRONMENT_LENGTH_MAX,
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  GRACE_HOURS_MIN,
  KEY_ERRORS,
  METADATA_LENGTH_MAX,
  NAME_LENGTH_MAX,
  PREFIX_LENGTH_MAX,
  SCOPE_LENGTH_MAX,
  SCOPES_MAX,
  USER_AGENT_KEPT,
} from "./domain.ts";

/** Longest id that is looked up: ours are far shorter. */
const ID_LENGTH_MAX = 64;
const PROJECT_ID = "proj_8Zk2vQ1mX7cB4nL9pS3t";
/** Longest text that is read as a date. */
const DATE_TIME_LENGTH_MAX = 64;

const DateTime = Type.String({ format: "date-time" });

/** May be left out; null means the same. */
function optional<Schema extends TSchema>(schema: Schema, options?: SchemaOptions) {
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

/** Body of a key's creation. */
export const KeyCreateBody = named("KeyCreateBody", {
  prefix: Type.String({
    pattern: `^[a-z0-9_]{1,${PREFIX_LENGTH_MAX}}$`,
    errorMessage: `must be 1 to ${PREFIX_LENGTH_MAX} lower-case letters, digits or underscores`,
    description: "What the secret begins with. With `sm` the key works as a Bearer credential of this API.",
    examples: ["acme_live"],
  }),
  name: text({ min: 1, max: NAME_LENGTH_MAX, examples: ["Warehouse"] }),
  scopes: Type.Array(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
    minItems: 1,
    maxItems: SCOPES_MAX,
    errorMessage: `must be a list of 1 to ${SCOPES_MAX} texts`,
    examples: [["orders:read"]],
  }),
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
});
export type KeyCreateBody = Static<typeof KeyCreateBody>;

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

/** Body of a verification. */
export const KeyVerifyBody = named("KeyVerifyBody", {
  secret: Type.String({ minLength: 1, errorMessage: "must be a text of at least 1 character" }),
  meta: optional(
    Type.Object({
      ip: optional(text({ min: 0, max: CLIENT_IP_LENGTH_MAX })),
      user_agent: optional(Type.String(), {
        description: `What is beyond ${USER_AGENT_KEPT} characters is cut off.`,
      }),
    }),
    {
      errorMessage: `must be an object with the texts ip (at most ${CLIENT_IP_LENGTH_MAX} characters) and user_agent`,
      description: "The client that showed the key: kept as `last_used_ip` and `last_used_ua`.",
    },
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

/** Answer to a verification. */
export const KeyVerdict = named("KeyVerdict", {
  valid: Type.Boolean(),
  key_id: orNull(Type.String({ format: "uuid" })),
  project_id: orNull(Type.String({ examples: [PROJECT_ID] })),
  scopes: orNull(Type.Array(Type.String({ examples: ["meter:write"] }))),
  error: orNull(oneOf(KEY_ERRORS, {}), { examples: [null] }),
});
export type KeyVerdict = Static<typeof KeyVerdict>;
