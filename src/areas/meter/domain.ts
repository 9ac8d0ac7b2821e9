import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { PERIODS, PLAN_MODES, PlanBody } from "./plans/schema.ts";
import type { Granularity, UsageQuery } from "./usage/schema.ts";

/** Milliseconds of an hour in UTC without leap seconds. */
export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
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

/** Creates a plan from a body. @throws ApiError `validation_error` for contradicting fields. */
export function planOf(body: PlanBody, now: number): Plan {
  const { amount, every, mode = "raise", day, carry_max: carryMax } = body;
  if (every === "day" && day !== undefined)
    throw invalidField("day", "is only allowed with every week or month");
  if (every === "week" && (day ?? 1) > 7)
    throw invalidField("day", "must be an integer from 1 (Monday) to 7");
  if (mode === "raise" && carryMax !== undefined) {
    throw invalidField("carry_max", "is only allowed with the mode add");
  }
  const terms = { amount, every, mode, day: every === "day" ? null : (day ?? 1), carryMax: carryMax ?? null };
  return { ...terms, nextAt: nextRefill(terms, now) };
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

/** Maximum buckets per series, more than a chart can display. */
export const BUCKETS_MAX = 1_000;
/** Default length of a series, in milliseconds. */
const DEFAULT_RANGE_MS = 30 * DAY_MS;
/** Earliest and latest timestamps of RFC 3339. */
const EARLIEST_MS = -62_167_219_200_000;
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A time range of complete buckets. */
export interface UsageRange {
  readonly from: number;
  readonly to: number;
  readonly granularity: Granularity;
}

/**
 * Returns the time range of a query, rounded to complete UTC buckets.
 * @throws ApiError `validation_error` for an empty range, or one with more than {@link BUCKETS_MAX} buckets.
 */
export function usageRangeOf(
  { granularity = "day" }: UsageQuery,
  given: { readonly from: number | null; readonly to: number | null },
  now: number,
): UsageRange {
  // Includes the current millisecond.
  const until = given.to ?? now + 1;
  // A range that ends within a bucket includes the complete bucket.
  const to = bucketAfter(granularity, until - 1);
  const from = bucketOf(granularity, given.from ?? Math.max(EARLIEST_MS, until - DEFAULT_RANGE_MS));
  if (from >= to) throw invalidField("from", "must be before to");
  if (to > LATEST_MS) throw invalidField("to", "must be before the last month of the year 9999");
  if (indexOf(granularity, to) - indexOf(granularity, from) > BUCKETS_MAX) {
    throw invalidField("from", `must be at most ${BUCKETS_MAX} ${granularity}s before to`);
  }
  return { from, to, granularity };
}

/** Returns the start of the bucket that contains a time. */
export function bucketOf(granularity: Granularity, time: number): number {
  return beginOf(granularity, indexOf(granularity, time));
}

/** Returns the end of the bucket that contains a time. */
export function bucketAfter(granularity: Granularity, time: number): number {
  return beginOf(granularity, indexOf(granularity, time) + 1);
}

function indexOf(granularity: Granularity, time: number): number {
  if (granularity !== "month") return Math.floor(time / (granularity === "hour" ? HOUR_MS : DAY_MS));
  const date = new Date(time);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function beginOf(granularity: Granularity, index: number): number {
  if (granularity !== "month") return index * (granularity === "hour" ? HOUR_MS : DAY_MS);
  // Date.UTC would map the years 0 to 99 to 1900 to 1999.
  return new Date(0).setUTCFullYear(Math.floor(index / 12), index % 12, 1);
}

/** @throws ApiError `invalid_request` for contradicting fields. */
export function assertCapture({ final = true, over }: { final?: boolean; over?: string }): void {
  if (over !== "cap" || final) return;
  throw new ApiError("invalid_request", '`over: "cap"` is only allowed for final captures.');
}
