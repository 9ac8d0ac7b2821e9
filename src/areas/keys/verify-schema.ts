import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import {
  CLIENT_IP_LENGTH_MAX,
  COST_MAX,
  KEY_ERRORS,
  RATELIMIT_MAX,
  RATELIMITS_MAX,
  REQUIRE_MAX,
  SCOPE_LENGTH_MAX,
  USER_AGENT_KEPT,
} from "./domain.ts";
import { DateTime, integer, listOf, optional, PROJECT_ID, RatelimitName } from "./schema.ts";

/** What a request can ask of the key that it comes with. */
export const ASKED = {
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
  require: optional(
    Type.Array(text({ min: 1, max: SCOPE_LENGTH_MAX }), {
      minItems: 1,
      maxItems: REQUIRE_MAX,
      errorMessage: `must be a list of 1 to ${REQUIRE_MAX} texts`,
      examples: [["orders:read"]],
    }),
    { description: "Scopes that the key must have, all of them." },
  ),
  cost: optional(integer(0, COST_MAX, { default: 1, examples: [1] }), {
    description: "How many of the key's `uses` it takes, where those are limited; 1 unless given.",
  }),
  ratelimits: optional(
    listOf(
      Type.Object({
        name: RatelimitName,
        cost: optional(integer(0, RATELIMIT_MAX, { default: 1 }), {
          description: "Tokens that it takes, at most the limit; 1 unless given.",
        }),
      }),
      RATELIMITS_MAX,
      { examples: [[{ name: "exports", cost: 5 }]] },
    ),
    { description: "Limits of the key that take part besides its automatic ones, or with another cost." },
  ),
};

/** Body of a verification. */
export const KeyVerifyBody = named("KeyVerifyBody", {
  secret: Type.String({ minLength: 1, errorMessage: "must be a text of at least 1 character" }),
  ...ASKED,
});
export type KeyVerifyBody = Static<typeof KeyVerifyBody>;

/** A limit as a verification found it, or left it. */
const RatelimitState = named("KeyRatelimitState", {
  name: Type.String({ examples: ["requests"] }),
  limit: Type.Integer({ examples: [100] }),
  remaining: Type.Integer({ description: "Whole tokens left.", examples: [99] }),
  reset_at: Type.String({ format: "date-time", description: "When the bucket is full again." }),
  exceeded: Type.Boolean({ description: "Whether it took part and had too few.", examples: [false] }),
});
export type RatelimitState = Static<typeof RatelimitState>;

/** Answer to a verification. Everything but `valid` and `error` is null where the key is unknown. */
export const KeyVerdict = named("KeyVerdict", {
  valid: Type.Boolean(),
  key_id: orNull(Type.String({ format: "uuid" })),
  project_id: orNull(Type.String({ examples: [PROJECT_ID] })),
  scopes: orNull(Type.Array(Type.String({ examples: ["meter:write"] }))),
  error: orNull(oneOf(KEY_ERRORS, {}), { examples: [null] }),
  owner_id: orNull(Type.String({ examples: ["acme"] })),
  meter_id: orNull(Type.String({ examples: ["acme"] })),
  name: orNull(Type.String({ examples: ["Warehouse"] })),
  environment: orNull(Type.String({ examples: ["live"] })),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
  expires_at: orNull(DateTime),
  enabled: orNull(Type.Boolean()),
  uses_remaining: orNull(Type.Integer(), { description: "Null: any number.", examples: [9_999] }),
  ratelimits: orNull(Type.Array(RatelimitState), { description: "All of the key's limits." }),
  retry_after_seconds: orNull(Type.Integer(), {
    description: "With `rate_limited` and `usage_exceeded`: when it is worth another try, if ever.",
    examples: [null],
  }),
});
export type KeyVerdict = Static<typeof KeyVerdict>;
