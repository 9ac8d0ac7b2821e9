import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../../kernel/data/ledger.ts";
import { named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { GivenAmount, PositiveAmount } from "../holds/schema.ts";
import { MeterBalance } from "../schema.ts";

/** How often a plan refills, in the order of the numbers that files have for it. */
export const PERIODS = ["day", "week", "month"] as const;
/** What a refill does: the same. */
export const PLAN_MODES = ["raise", "add"] as const;

/** Longest address of a webhook: what other addresses have. */
const URL_LENGTH_MAX = 2_048;

const Every = oneOf(PERIODS, {
  errorMessage: `must be one of ${PERIODS.join(", ")}`,
  description: "At 00:00 UTC.",
});
const Mode = oneOf(PLAN_MODES, {
  errorMessage: `must be one of ${PLAN_MODES.join(", ")}`,
  description: "Raises a balance below the amount to it, or adds the amount.",
});
const CARRY = "With `add`: what is left of before is cut to this first, though never below what is held.";

/** Body that sets a plan. */
export const PlanBody = named("PlanBody", {
  amount: GivenAmount,
  every: Every,
  mode: Type.Optional(Mode),
  day: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31,
      errorMessage: "must be an integer from 1 to 31, with every week from 1 (Monday) to 7",
      description: "Of the month, whose last day stands for those that it does not have; or of the week.",
    }),
  ),
  carry_max: Type.Optional(Type.Integer({ ...BalanceValue, description: CARRY })),
  start_now: Type.Optional(Type.Boolean({ default: false, description: "Makes the first refill at once." })),
});
export type PlanBody = Static<typeof PlanBody>;

/** A meter's plan. */
export const MeterPlan = named("MeterPlan", {
  meter_id: MeterBalance.properties.meter_id,
  amount: PositiveAmount,
  every: Every,
  mode: Mode,
  day: orNull(Type.Integer({ examples: [1] })),
  carry_max: orNull(Type.Integer({ description: CARRY })),
  next_at: Type.String({ format: "date-time", description: "The next refill." }),
});
export type MeterPlan = Static<typeof MeterPlan>;

/** Body that sets an alert. */
export const AlertBody = named("AlertBody", {
  threshold: PositiveAmount,
  webhook_url: Type.String({
    maxLength: URL_LENGTH_MAX,
    errorMessage: `must be a URL of at most ${URL_LENGTH_MAX} characters`,
    examples: ["https://example.com/low"],
  }),
});
export type AlertBody = Static<typeof AlertBody>;

/** An alert, of one meter or of all that have none of their own. */
export const MeterAlert = named("MeterAlert", {
  meter_id: orNull(Type.String({ examples: ["customer-42"] }), { description: "Null: of the project." }),
  ...AlertBody.properties,
});
export type MeterAlert = Static<typeof MeterAlert>;

/** What was taken away is gone, whether or not it was there. */
export const TermRemoved = named("TermRemoved", { success: Type.Literal(true) });
