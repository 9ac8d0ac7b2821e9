import { type Static, Type } from "@sinclair/typebox";
import { BalanceValue } from "../../../kernel/data/ledger.ts";
import { dateTime, named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { PERIODS, PLAN_MODES } from "../domain.ts";
import { PositiveAmount, RequestedAmount } from "../holds/schema.ts";
import { MeterBalance } from "../schema.ts";

/** Maximum characters of a webhook URL, the same as of other URLs. */
const URL_LENGTH_MAX = 2_048;

const Every = oneOf(PERIODS, {
  description: "Period of the refills, which run at 00:00 UTC.",
});
const Mode = oneOf(PLAN_MODES, {
  description: "`raise` sets a lower balance to the amount; `add` adds the amount.",
});
const CARRY =
  "With `add`: maximum balance to carry over, in credits. A higher balance is reduced first, but not below the held credits.";

export const PlanBody = named("PlanBody", {
  amount: RequestedAmount,
  every: Every,
  mode: Type.Optional(Mode),
  day: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31,
      errorMessage: "must be an integer from 1 to 31, with every week from 1 (Monday) to 7",
      description: "Day of the month (the last day in shorter months) or of the week. Default: 1.",
    }),
  ),
  carry_max: Type.Optional(Type.Integer({ ...BalanceValue, description: CARRY })),
  start_now: Type.Optional(
    Type.Boolean({ default: false, description: "Whether to make the first refill immediately." }),
  ),
});
export type PlanBody = Static<typeof PlanBody>;

export const MeterPlan = named("MeterPlan", {
  meter_id: MeterBalance.properties.meter_id,
  amount: PositiveAmount,
  every: Every,
  mode: Mode,
  day: orNull(Type.Integer({ examples: [1] })),
  carry_max: orNull(Type.Integer({ description: CARRY })),
  next_at: dateTime({ description: "Time of the next refill." }),
});
export type MeterPlan = Static<typeof MeterPlan>;

export const AlertBody = named("AlertBody", {
  threshold: { ...PositiveAmount, description: "Available credits below which the alert is sent." },
  webhook_url: Type.String({
    maxLength: URL_LENGTH_MAX,
    errorMessage: `must be a URL of at most ${URL_LENGTH_MAX} characters`,
    description: "URL that receives the alert as a signed webhook.",
    examples: ["https://example.com/low"],
  }),
});
export type AlertBody = Static<typeof AlertBody>;

export const MeterAlert = named("MeterAlert", {
  meter_id: orNull(Type.String({ examples: ["customer-42"] }), {
    description: "Id of the meter; null for the project's alert.",
  }),
  ...AlertBody.properties,
});
export type MeterAlert = Static<typeof MeterAlert>;

/** Response of a deletion, also if nothing existed. */
export const TermRemoved = named("TermRemoved", { success: Type.Literal(true) });
