import { ApiError } from "../../kernel/errors.ts";
import { DAY_MS } from "../../kernel/time/units.ts";

/** Statuses of holds, in the order of their stored numbers. */
export const HOLD_STATUSES = ["open", "captured", "released", "expired"] as const;
export type HoldStatus = (typeof HOLD_STATUSES)[number];

/** Periods of plans, in the order of their stored numbers. */
export const PERIODS = ["day", "week", "month"] as const;
/** Modes of plans, in the order of their stored numbers. */
export const PLAN_MODES = ["raise", "add"] as const;

/** Days from the Monday before 1970-01-01, a Thursday. */
const DAYS_TO_MONDAY = 3;

/** A refill plan of a meter. */
export interface Plan {
  readonly amount: number;
  readonly every: (typeof PERIODS)[number];
  readonly mode: (typeof PLAN_MODES)[number];
  /** Day of the month, or of the week from 1 (Monday); null for daily plans. */
  readonly day: number | null;
  /** Maximum balance to carry over before the amount is added; null: no limit. */
  readonly carryMax: number | null;
  readonly nextAt: number;
}

/** Returns the next refill of a plan after a time, always at 00:00 UTC. */
export function nextRefill({ every, day }: Pick<Plan, "every" | "day">, after: number): number {
  const next = Math.floor(after / DAY_MS) + 1;
  if (every === "day") return next * DAY_MS;
  const target = day ?? 1;
  if (every === "week") {
    const weekday = (((next + DAYS_TO_MONDAY) % 7) + 7) % 7;
    return (next + ((target - 1 - weekday + 7) % 7)) * DAY_MS;
  }
  const date = new Date(after);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const here = dayOfMonth(year, month, target);
  return here > after ? here : dayOfMonth(year, month + 1, target);
}

function dayOfMonth(year: number, month: number, day: number): number {
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(day, last));
}

/** @throws ApiError `invalid_request` for contradicting fields. */
export function assertCapture({ final = true, over }: { final?: boolean; over?: string }): void {
  if (over !== "cap" || final) return;
  throw new ApiError("invalid_request", '`over: "cap"` is only allowed for final captures.');
}
