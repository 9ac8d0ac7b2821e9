import { type Static, Type } from "@sinclair/typebox";
import {
  dateTime,
  duration,
  flag,
  fractionalDuration,
  GivenMetadata,
  givenDateTime,
  integer,
  listOf,
  Metadata,
  named,
  OwnerId,
  oneOf,
  optional,
  orNull,
  refersTo,
  text,
  uuid,
} from "../../kernel/data/schema.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { MANAGED } from "../../kernel/resources/managed.ts";
import { TIMESTAMP_EXPECTED } from "../../kernel/time/date-time.ts";
import {
  ALLOWED_IPS_MAX,
  CLIENT_IP_LENGTH_MAX,
  DURATION_MS_MAX,
  DURATION_MS_MIN,
  ENVIRONMENT_LENGTH_MAX,
  GRACE_HOURS_DEFAULT,
  GRACE_HOURS_MAX,
  GRACE_HOURS_MIN,
  IMPORTED_PER_REQUEST_MAX,
  KEY_ROLES_MAX,
  NAME_LENGTH_MAX,
  PERMISSIONS_MAX,
  PREFIX_LENGTH_MAX,
  RATELIMIT_MAX,
  RATELIMIT_NAME_LENGTH_MAX,
  RATELIMITS_MAX,
  SCOPE_LENGTH_MAX,
  SCOPES_MAX,
} from "./domain.ts";
import { HASH_ALGORITHMS } from "./imported-digest.ts";
import { RoleName } from "./roles/schema.ts";

/** Longest id in a path: a longer one is rejected before a lookup. */
const ID_LENGTH_MAX = 64;
/** Project id for examples. */
export const PROJECT_ID = "proj_8Zk2vQ1mX7cB4nL9pS3t";

/** Default number of keys per page. */
export const KEYS_LIMIT = 20;

export const KeyParams = Type.Object({
  id: Type.String({ maxLength: ID_LENGTH_MAX, errorMessage: "must be the id of a key, a UUID" }),
});

export const KeyProjectParams = Type.Object({
  id: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be a project id, such as proj_…",
    examples: [PROJECT_ID],
  }),
});

const MeterId = Type.String({
  pattern: "^[a-zA-Z0-9_-]{1,64}$",
  errorMessage: "must be 1 to 64 letters, digits, dashes or underscores",
  examples: ["acme"],
});
export const RatelimitName = Type.String({
  pattern: `^[a-z0-9_.-]{1,${RATELIMIT_NAME_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${RATELIMIT_NAME_LENGTH_MAX} lower-case letters, digits or characters of _.-`,
  description: "Name of the limit, unique within the key.",
  examples: ["requests"],
});

const RATELIMIT = {
  name: RatelimitName,
  limit: integer({
    min: 1,
    max: RATELIMIT_MAX,
    description: "Number of tokens in a full bucket.",
    examples: [100],
  }),
  duration_ms: duration({
    unit: "ms",
    min: DURATION_MS_MIN,
    max: DURATION_MS_MAX,
    description: "Time that an empty bucket takes to fill, in milliseconds. It fills continuously.",
    examples: [60_000],
  }),
};
const AUTO = {
  description:
    "Whether every verification takes a token. If false, only verifications that name the limit do.",
};
const SHARED = {
  description:
    "`owner`: all keys of the owner in the key's project share one bucket. `key`: each key has its own.",
  errorMessage: "must be key or owner",
};
const Ratelimit = named("KeyRatelimit", {
  ...RATELIMIT,
  auto: Type.Boolean(AUTO),
  shared: oneOf(["key", "owner"], SHARED),
});
export type Ratelimit = Static<typeof Ratelimit>;

const REFILL = {
  every: oneOf(["day", "month"], {
    errorMessage: "must be day or month",
    description: "Period of the refills, at 00:00 UTC. Several missed refills count once.",
    examples: ["month"],
  }),
  amount: integer({
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    description: "Number of uses after a refill. A refill does not lower a higher number.",
    examples: [10_000],
  }),
  day: Type.Optional(
    integer({
      min: 1,
      max: 31,
      description:
        "Day of the month on which a monthly refill happens; the last day in shorter months. Default 1. Not allowed with `every: day`.",
      examples: [1],
    }),
  ),
};
const Uses = named("KeyUses", {
  remaining: integer({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    description: "Number of uses left.",
    examples: [10_000],
  }),
  refill: Type.Optional(
    Type.Object(REFILL, { description: "Recurring refill of the uses, at 00:00 UTC. Without it, none." }),
  ),
});
export type Uses = Static<typeof Uses>;

/** Optional fields of a creation, which an update can also change. */
const CHANGEABLE = {
  environment: optional(text({ min: 1, max: ENVIRONMENT_LENGTH_MAX }), {
    errorMessage: `must be a text of 1 to ${ENVIRONMENT_LENGTH_MAX} characters`,
    description: "Tag by which keys can be listed.",
    examples: ["live"],
  }),
  metadata: GivenMetadata,
  expires_at: optional(givenDateTime(), {
    errorMessage: TIMESTAMP_EXPECTED,
    description: "Time at which the key expires. Null: never.",
  }),
  owner_id: optional(OwnerId, { description: "Id of your customer who owns the key." }),
  meter_id: optional(MeterId, { description: "Id of the meter that is charged for uses of the key." }),
  enabled: optional(flag(), {
    description: "Whether the key works. False pauses it. Default true.",
    examples: [true],
  }),
  ratelimits: optional(
    listOf(
      Type.Object({
        ...RATELIMIT,
        auto: Type.Optional(flag({ ...AUTO, default: true })),
        shared: Type.Optional(oneOf(["key", "owner"], { ...SHARED, default: "key" })),
      }),
      { max: RATELIMITS_MAX },
    ),
    {
      description:
        "Rate limits of the key. Those of more than an hour survive a restart; the others are full after it.",
    },
  ),
  uses: optional(
    Type.Object({
      ...Uses.properties,
      refill: optional(Type.Object(REFILL), { description: "Recurring refill of the uses." }),
    }),
    {
      description: "Number of times the key can be used. Null: unlimited.",
    },
  ),
  allowed_ips: optional(
    listOf(text({ min: 1, max: CLIENT_IP_LENGTH_MAX }), {
      max: ALLOWED_IPS_MAX,
      examples: [["203.0.113.0/24"]],
    }),
    {
      description: "IP addresses and CIDR ranges from which the key can be used. Empty: any address.",
    },
  ),
  permissions: optional(
    listOf(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
      max: PERMISSIONS_MAX,
      of: "texts",
      examples: [["documents.read"]],
    }),
    {
      description:
        "Permissions of the key in addition to its scopes: any texts, with `*` as in scopes. Not for the prefix `sm`.",
    },
  ),
  roles: optional(
    listOf(
      { ...RoleName, ...refersTo("roles") },
      { max: KEY_ROLES_MAX, of: "names", examples: [["editor"]] },
    ),
    {
      description:
        "Names of roles of the key's project, whose permissions the key has; of the default project for a key of the account. Not for the prefix `sm`.",
    },
  ),
};

const PREFIX = {
  pattern: `^[a-z0-9_]{1,${PREFIX_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${PREFIX_LENGTH_MAX} lower-case letters, digits or underscores`,
  examples: ["acme_live"],
};
const Name = text({ min: 1, max: NAME_LENGTH_MAX, description: "Name of the key.", examples: ["Warehouse"] });
const Scopes = listOf(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
  min: 1,
  max: SCOPES_MAX,
  of: "texts",
  description: "Scopes of the key: of this API for the prefix `sm`, otherwise any texts.",
  examples: [["orders:read"]],
});

export const KeyCreateBody = named("KeyCreateBody", {
  prefix: Type.String({
    ...PREFIX,
    description: "Start of the secret. A key with the prefix `sm` is a Bearer credential of this API.",
  }),
  name: Name,
  scopes: Scopes,
  ...CHANGEABLE,
  ...MANAGED,
});
export type KeyCreateBody = Static<typeof KeyCreateBody>;

/** Characters of a hash in hex; in base64 it has fewer. */
const HASH_LENGTH_MAX = 64;

/** A key of another service, by the hash of its secret. */
const ImportedKey = named("KeyToImport", {
  hash: text({
    min: 1,
    max: HASH_LENGTH_MAX,
    description: "SHA-256 hash of the whole secret: 64 hex digits, or 44 characters of base64.",
    examples: ["b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2"],
  }),
  hash_algorithm: optional(oneOf(HASH_ALGORITHMS, {}), {
    description: "How the hash is written. Default: as its length says.",
    examples: ["sha256-hex"],
  }),
  prefix: optional(Type.String(PREFIX), {
    description: "Start of the secret, for display and for rotations. Not `sm`. Null: unknown.",
  }),
  name: Name,
  scopes: optional(listOf(text({ min: 1, max: SCOPE_LENGTH_MAX }), { max: SCOPES_MAX, of: "texts" }), {
    description: "Scopes of the key: any texts, or none.",
    examples: [["orders:read"]],
  }),
  ...CHANGEABLE,
  ...MANAGED,
});
export type ImportedKey = Static<typeof ImportedKey>;

export const KeysImportBody = named("KeysImportBody", {
  keys: listOf(ImportedKey, { min: 1, max: IMPORTED_PER_REQUEST_MAX, description: "Keys to import." }),
});

export const KeysImported = named("KeysImported", {
  keys: Type.Array(
    Type.Object({
      index: Type.Integer({ description: "Position of the key in the request, from 0.", examples: [0] }),
      key_id: uuid(),
      existing: Type.Optional(
        Type.Literal(true, {
          description: "Whether the account already has a key with this hash, which stays unchanged.",
        }),
      ),
    }),
    { description: "The keys, in the order of the request." },
  ),
});
export type KeysImported = Static<typeof KeysImported>;

/** Body of an update: omitted fields keep their value. */
export const KeyPatchBody = named("KeyPatchBody", {
  name: Type.Optional(Name),
  scopes: Type.Optional(Scopes),
  ...CHANGEABLE,
});
export type KeyPatchBody = Static<typeof KeyPatchBody>;

export const KeysRevokeBody = named("KeysRevokeBody", { owner_id: OwnerId });

export const KeysRevoked = named("KeysRevoked", {
  revoked: Type.Integer({ description: "Number of keys that this request revoked.", examples: [3] }),
  more: Type.Boolean({
    description: "Whether the owner has more keys. If true, send the request again.",
    examples: [false],
  }),
});
export type KeysRevoked = Static<typeof KeysRevoked>;

export const KeyRotateBody = named("KeyRotateBody", {
  grace_hours: Type.Optional(
    fractionalDuration({
      unit: "hours",
      min: GRACE_HOURS_MIN,
      max: GRACE_HOURS_MAX,
      default: GRACE_HOURS_DEFAULT,
      description: "Hours for which the old key continues to work.",
    }),
  ),
});

const TERMS = {
  name: Type.String({ examples: ["Checkout service"] }),
  scopes: Type.Array(Type.String({ examples: ["meter:write"] })),
  environment: Type.Optional(Type.String({ examples: ["production"] })),
  metadata: Type.Optional(Metadata),
  project_id: orNull(Type.String({ examples: [PROJECT_ID] }), {
    description: "Id of the only project in which the key works. Null for a key of the account.",
  }),
  created_at: dateTime(),
  expires_at: orNull(dateTime()),
  owner_id: orNull(Type.String({ examples: ["acme"] })),
  meter_id: orNull(Type.String({ examples: ["acme"] })),
  enabled: Type.Boolean(),
  ratelimits: Type.Array(Ratelimit),
  uses: orNull(Uses, { description: "Number of times the key can be used. Null: unlimited." }),
  allowed_ips: Type.Array(Type.String({ examples: ["203.0.113.0/24"] }), {
    description: "IP addresses and CIDR ranges from which the key can be used. Empty: any address.",
  }),
  permissions: Type.Array(Type.String({ examples: ["documents.read"] }), {
    description: "Permissions of the key in addition to its scopes, without those of its roles.",
  }),
  roles: Type.Array(Type.String({ examples: ["editor"] }), { description: "Names of the key's roles." }),
  created_by: orNull(Type.String({ examples: ["psn_3vQ8Zk2mX7cB4nL9pS1t"] }), {
    description: "Id of the person who created the key. Null for a key.",
    examples: [null],
  }),
  ...MANAGED,
};

export const KeyCreated = named("KeyCreated", {
  key_id: uuid(),
  secret: Type.String({
    description: "Secret of the key. Only this response contains it.",
    examples: ["sm_4fJ9…_1c2d3e4f"],
  }),
  prefix: Type.String({ description: "Start of the secret.", examples: ["sm"] }),
  ...TERMS,
});
export type KeyCreated = Static<typeof KeyCreated>;

const ITEM = {
  id: uuid(),
  masked_secret: Type.String({ description: "Prefix of the secret.", examples: ["sm_..."] }),
  last4: Type.String({
    description: "Last four characters of the secret. Empty for an imported key.",
    examples: ["3e4f"],
  }),
  prefix: orNull(Type.String({ examples: ["sm"] }), {
    description: "Start of the secret. Null if it is unknown, for an imported key.",
  }),
  ...TERMS,
  revoked_at: orNull(dateTime(), { examples: [null] }),
  last_used_at: orNull(dateTime()),
  imported: Type.Optional(
    Type.Literal(true, { description: "Whether the key was imported by the hash of its secret." }),
  ),
};

export const KeyItem = named("KeyItem", ITEM);
export type KeyItem = Static<typeof KeyItem>;

export const Key = named("Key", {
  ...ITEM,
  last_used_ip: Type.Optional(
    Type.String({
      description: "Client address of the last valid verification, from its `meta.ip`.",
      examples: ["203.0.113.7"],
    }),
  ),
  last_used_ua: Type.Optional(
    Type.String({
      description: "User agent of the last valid verification, from its `meta.user_agent`.",
      examples: ["curl/8.5.0"],
    }),
  ),
});
export type Key = Static<typeof Key>;

/** A page of keys, newest first. */
export const KeyPage = named("KeyPage", {
  keys: Type.Array(KeyItem),
  has_more: Type.Boolean({ examples: [false] }),
  next_cursor: orNull(dateTime(), {
    description: "Cursor of the next page: the `created_at` of the last item. Null on the last page.",
    examples: [null],
  }),
});
export type KeyPage = Static<typeof KeyPage>;

export const KeyRotated = named("KeyRotated", {
  new_key_id: uuid(),
  new_secret: Type.String({
    description: "Secret of the new key. Only this response contains it.",
    examples: ["sm_7hK2…_5a6b7c8d"],
  }),
  old_key_id: uuid(),
  old_expires_at: dateTime({ description: "Time at which the old key expires." }),
  grace_hours: Type.Number({ examples: [24] }),
});
export type KeyRotated = Static<typeof KeyRotated>;

export const KeyRevoked = named("KeyRevoked", {
  key_id: uuid(),
  revoked_at: dateTime(),
  status: Type.Literal("revoked"),
});
export type KeyRevoked = Static<typeof KeyRevoked>;

export const KeyUsage = named("KeyUsage", {
  from: dateTime(),
  to: dateTime(),
  granularity: oneOf(["hour", "day"], {}),
  data: Type.Array(
    Type.Object({
      from: dateTime({ description: "Start of the hour or day, UTC." }),
      total: Type.Integer({ description: "Number of verifications and requests.", examples: [12] }),
      valid: Type.Integer({ description: "Number of valid ones.", examples: [9] }),
      errors: Type.Record(Type.String(), Type.Integer(), {
        description: "Number of rejected ones, by `error`.",
        examples: [{ rate_limited: 3 }],
      }),
    }),
    { description: "Hours or days in which the key was used, oldest first." },
  ),
});
export type KeyUsage = Static<typeof KeyUsage>;

/** Longest id of a person that is looked up: ours are shorter. */
const PERSON_ID_LENGTH_MAX = 64;

export const KeysQuery = Type.Object({
  ...pageQuery(KEYS_LIMIT).properties,
  owner_id: Type.Optional(OwnerId),
  environment: Type.Optional(text({ min: 1, max: ENVIRONMENT_LENGTH_MAX })),
  created_by: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: PERSON_ID_LENGTH_MAX,
      errorMessage: "must be the id of a person",
      description: "Only keys that this person created.",
      examples: ["psn_3vQ8Zk2mX7cB4nL9pS1t"],
    }),
  ),
});
