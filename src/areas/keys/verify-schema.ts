import { type Static, Type } from "@sinclair/typebox";
import {
  dateTime,
  integer,
  listOf,
  named,
  oneOf,
  optional,
  orNull,
  text,
  uuid,
} from "../../kernel/data/schema.ts";
import {
  CLIENT_IP_LENGTH_MAX,
  COST_MAX,
  KEY_ERRORS,
  RATELIMIT_MAX,
  RATELIMITS_MAX,
  REQUIRE_MAX,
  SCOPE_LENGTH_MAX,
  USER_AGENT_LENGTH_MAX,
} from "./domain.ts";
import { REQUIREMENT_LEVELS_MAX, REQUIREMENT_TEXTS_MAX } from "./requirement.ts";
import { PROJECT_ID, RatelimitName } from "./schema.ts";

/** Items of an `and` or `or`; `parseRequirement` checks them. */
const Parts = Type.Optional(Type.Array(Type.Unknown(), { minItems: 1 }));

/** Fields of a verification apart from the secret: the client, and what the key must allow. */
export const VERIFY_FIELDS = {
  meta: optional(
    Type.Object({
      ip: optional(text({ min: 0, max: CLIENT_IP_LENGTH_MAX })),
      user_agent: optional(Type.String(), {
        description: `User agent of the client, cut to ${USER_AGENT_LENGTH_MAX} characters.`,
      }),
    }),
    {
      errorMessage: `must be an object with the texts ip (at most ${CLIENT_IP_LENGTH_MAX} characters) and user_agent`,
      description: "The client that sent the key. Stored as `last_used_ip` and `last_used_ua`.",
    },
  ),
  require: optional(
    Type.Union(
      [
        Type.Array(Type.String(), { minItems: 1, maxItems: REQUIRE_MAX, examples: [["orders:read"]] }),
        Type.Object(
          { and: Parts, or: Parts },
          { additionalProperties: true, examples: [{ or: ["orders:read", "orders:write"] }] },
        ),
      ],
      { errorMessage: `must be a list of 1 to ${REQUIRE_MAX} texts, or an object with \`and\` or \`or\`` },
    ),
    {
      description: `What the key must have: each text must be among its scopes, its permissions or those of its roles. A list of which it must have all, or an object with exactly one of \`and\` and \`or\`, whose items are texts (1 to ${SCOPE_LENGTH_MAX} characters) and such objects (at most ${REQUIREMENT_LEVELS_MAX} levels and ${REQUIREMENT_TEXTS_MAX} texts).`,
    },
  ),
  cost: optional(integer({ min: 0, max: COST_MAX, default: 1, examples: [1] }), {
    description: "Number of the key's `uses` that the verification costs, if they are limited. Default 1.",
  }),
  ratelimits: optional(
    listOf(
      Type.Object({
        name: RatelimitName,
        cost: optional(integer({ min: 0, max: RATELIMIT_MAX, default: 1 }), {
          description: "Number of tokens to take, at most the limit. Default 1.",
        }),
      }),
      { max: RATELIMITS_MAX, examples: [[{ name: "exports", cost: 5 }]] },
    ),
    { description: "Extra limits of the key to apply, or a different cost for an automatic one." },
  ),
};

export const KeyVerifyBody = named("KeyVerifyBody", {
  secret: Type.String({ minLength: 1, errorMessage: "must be a text of at least 1 character" }),
  ...VERIFY_FIELDS,
});
export type KeyVerifyBody = Static<typeof KeyVerifyBody>;

/** A rate limit after a verification. */
const RatelimitState = named("KeyRatelimitState", {
  name: Type.String({ examples: ["requests"] }),
  limit: Type.Integer({ examples: [100] }),
  remaining: Type.Integer({ description: "Number of whole tokens left.", examples: [99] }),
  reset_at: dateTime({ description: "Time at which the bucket is full again." }),
  exceeded: Type.Boolean({
    description: "Whether the limit was applied and had too few tokens.",
    examples: [false],
  }),
});
export type RatelimitState = Static<typeof RatelimitState>;

/** Result of a verification. All fields except `valid` and `error` are null if the key is unknown. */
export const KeyVerdict = named("KeyVerdict", {
  valid: Type.Boolean(),
  key_id: orNull(uuid()),
  project_id: orNull(Type.String({ examples: [PROJECT_ID] })),
  scopes: orNull(Type.Array(Type.String({ examples: ["meter:write"] }))),
  roles: orNull(Type.Array(Type.String({ examples: ["editor"] })), {
    description: "Names of the key's roles.",
  }),
  permissions: orNull(Type.Array(Type.String({ examples: ["documents.read"] })), {
    description: "Permissions of the key and of its roles, each once.",
  }),
  error: orNull(oneOf(KEY_ERRORS, {}), { examples: [null] }),
  owner_id: orNull(Type.String({ examples: ["acme"] })),
  meter_id: orNull(Type.String({ examples: ["acme"] })),
  name: orNull(Type.String({ examples: ["Warehouse"] })),
  environment: orNull(Type.String({ examples: ["live"] })),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
  expires_at: orNull(dateTime()),
  enabled: orNull(Type.Boolean()),
  uses_remaining: orNull(Type.Integer(), {
    description: "Number of uses left. Null: unlimited.",
    examples: [9_999],
  }),
  ratelimits: orNull(Type.Array(RatelimitState), { description: "State of all rate limits of the key." }),
  retry_after_seconds: orNull(Type.Integer(), {
    description:
      "Seconds after which a retry can succeed, with `rate_limited` and `usage_exceeded`. Null if it cannot.",
    examples: [null],
  }),
});
export type KeyVerdict = Static<typeof KeyVerdict>;
