import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull, text } from "../../kernel/data/schema.ts";
import { CHECK_CODES, FLAGS_MAX, SECRET_LENGTH_MAX } from "./domain.ts";
import type { CheckPorts, KeyFacts } from "./ports.ts";

/** Body of a check: what is asked of key, meter and flags, in the words of their areas. */
export function checkBody<Asked>({ keys, meters, flags }: CheckPorts<Asked>) {
  const { amount, meter_id, ttl_seconds, hold_id } = meters.fields;
  const meter = Type.Optional({
    ...meter_id,
    description: "The key's `meter_id` unless given, or else its `owner_id`.",
  });
  const { meta, require, cost, ratelimits } = keys.fields;
  return named("CheckBody", {
    secret: text({ min: 1, max: SECRET_LENGTH_MAX, examples: ["acme_live_zyxw"] }),
    meta: Type.Optional(meta),
    require: Type.Optional(require),
    cost: Type.Optional(cost),
    ratelimits: Type.Optional(ratelimits),
    deduct: Type.Optional(
      named("CheckDeduct", { amount, meter_id: meter }, { description: "Taken from the meter at once." }),
    ),
    hold: Type.Optional(
      named(
        "CheckHold",
        { amount, meter_id: meter, ttl_seconds: Type.Optional(ttl_seconds), hold_id: Type.Optional(hold_id) },
        { description: "Kept in the meter, for a capture or release later. Not with `deduct`." },
      ),
    ),
    flags: Type.Optional(
      Type.Array(flags.key, {
        maxItems: FLAGS_MAX,
        errorMessage: `must be a list of at most ${FLAGS_MAX} keys of flags`,
        description: "Flags to evaluate for the key's owner.",
        examples: [["new-checkout"]],
      }),
    ),
    context: Type.Optional({
      ...flags.context,
      description:
        "What else the flags are evaluated for: any JSON, at most 8 levels. `targetingKey` is the key's `owner_id`, or else its id, and `key` has its id, owner, environment and metadata.",
      examples: [{ plan: "pro" }],
    }),
  });
}
export type CheckBody = Static<ReturnType<typeof checkBody>>;

/** The meter of a check, as it left it. */
const CheckMeter = named("CheckMeter", {
  meter_id: Type.String({ examples: ["acme"] }),
  balance: Type.Integer({ examples: [995] }),
  available: Type.Integer({ description: "The balance without what is held.", examples: [995] }),
  deducted: Type.Integer({ examples: [5] }),
  hold_id: orNull(Type.String(), { examples: [null] }),
});
export type CheckMeter = Static<typeof CheckMeter>;

/** What a flag is for the key's owner. */
const CheckFlag = named("CheckFlag", {
  value: Type.Optional(
    Type.Unknown({ description: "Left out where it is your own default.", examples: [true] }),
  ),
  variant: Type.Optional(Type.String({ examples: ["on"] })),
  reason: Type.Optional(Type.String({ examples: ["SPLIT"] })),
  error: Type.Optional(
    oneOf(["FLAG_NOT_FOUND"], { description: "Instead of all others: it denies nothing.", examples: [] }),
  ),
});
export type CheckFlag = Static<typeof CheckFlag>;

/** What is told of the key. */
type Facts = CheckPorts<never>["keys"]["facts"];

/** The answer of a check: the same fields, whatever it says. */
export function checkAnswer(facts: Facts) {
  const { retry_after_seconds, key_id, owner_id, project_id, name, environment } = facts;
  const { scopes, metadata, uses_remaining, ratelimits } = facts;
  return named("CheckAnswer", {
    allowed: Type.Boolean(),
    code: oneOf(CHECK_CODES, {}),
    status: Type.Integer({ description: "What to answer your client with.", examples: [200] }),
    retry_after_seconds,
    key_id,
    owner_id,
    project_id,
    name,
    environment,
    scopes,
    metadata,
    uses_remaining,
    ratelimits,
    meter: orNull(CheckMeter, {
      description: "Null where no credits were asked for, and where something before them denied.",
    }),
    flags: orNull(Type.Record(Type.String(), CheckFlag), {
      description: "By their keys; null when denied.",
      examples: [{ "new-checkout": { value: true, variant: "on", reason: "SPLIT" } }],
    }),
  });
}

/** The answer of a check. */
export interface CheckAnswer extends KeyFacts {
  readonly allowed: boolean;
  readonly code: (typeof CHECK_CODES)[number];
  readonly status: number;
  readonly meter: CheckMeter | null;
  readonly flags: Record<string, CheckFlag> | null;
}
