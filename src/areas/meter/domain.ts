import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { PERIODS, PLAN_MODES, PlanBody } from "./plans/schema.ts";
import type { Granularity, UsageQuery } from "./usage/schema.ts";

/** Hours, days and weeks of UTC, which knows no leap second. */
export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Whole days from 1970-01-01, a Thursday, back to a Monday. */
const DAYS_TO_MONDAY = 3;

/** When and how a meter is refilled. */
export interface Plan {
  readonly amount: number;
  readonly every: (typeof PERIODS)[number];
  readonly mode: (typeof PLAN_MODES)[number];
  /** Of the month, or of the week from Monday; null with every day. */
  readonly day: number | null;
  /** What is left is cut to this before an amount is added; null: it stays. */
  readonly carryMax: number | null;
  readonly nextAt: number;
}

/** The plan that a body asks for. @throws ApiError `validation_error` for what does not go together. */
export function planOf(body: PlanBody, now: number): Plan {
  const { amount, every, mode = "raise", day, carry_max: carryMax } = body;
  if (every === "day" && day !== undefined) throw invalidField("day", "is of a week or a month only");
  if (every === "week" && (day ?? 1) > 7)
    throw invalidField("day", "must be an integer from 1 (Monday) to 7");
  if (mode === "raise" && carryMax !== undefined) {
    throw invalidField("carry_max", "goes with the mode add: a balance that is raised has nothing to cut");
  }
  const terms = { amount, every, mode, day: every === "day" ? null : (day ?? 1), carryMax: carryMax ?? null };
  return { ...terms, nextAt: nextRefill(terms, now) };
}

/** The first moment after another at which a plan refills: always 00:00 UTC. */
export function nextRefill({ every, day }: Pick<Plan, "every" | "day">, after: number): number {
  const next = Math.floor(after / DAY_MS) + 1;
  if (every === "day") return next * DAY_MS;
  const wanted = day ?? 1;
  if (every === "week") {
    const weekday = (((next + DAYS_TO_MONDAY) % 7) + 7) % 7;
    return (next + ((wanted - 1 - weekday + 7) % 7)) * DAY_MS;
  }
  const date = new Date(after);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const here = dayOfMonth(year, month, wanted);
  return here > after ? here : dayOfMonth(year, month + 1, wanted);
}

function dayOfMonth(year: number, month: number, day: number): number {
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(day, last));
}

/** Buckets of a series at most: more than a chart has pixels for. */
export const BUCKETS_MAX = 1_000;
/** How much of a series is shown where nothing is said. */
const STRETCH_MS = 30 * DAY_MS;
/** Smallest and largest moment that RFC 3339 can write. */
const EARLIEST_MS = -62_167_219_200_000;
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A stretch of whole buckets. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly granularity: Granularity;
}

/**
 * The stretch that a query asks for, in whole buckets of UTC.
 * @throws ApiError `validation_error` for one without a bucket, or with more than {@link BUCKETS_MAX}.
 */
export function stretchOf(
  { granularity = "day" }: UsageQuery,
  given: { readonly from: number | null; readonly to: number | null },
  now: number,
): Stretch {
  // What has just happened belongs to it.
  const until = given.to ?? now + 1;
  // Up to a moment in a bucket means all of that bucket.
  const to = bucketAfter(granularity, until - 1);
  const from = bucketOf(granularity, given.from ?? Math.max(EARLIEST_MS, until - STRETCH_MS));
  if (from >= to) throw invalidField("from", "must come before to");
  if (to > LATEST_MS) throw invalidField("to", "must lie before the last month of the year 9999");
  if (indexOf(granularity, to) - indexOf(granularity, from) > BUCKETS_MAX) {
    throw invalidField("from", `must lie at most ${BUCKETS_MAX} ${granularity}s before to`);
  }
  return { from, to, granularity };
}

/** When the bucket of a moment begins. */
export function bucketOf(granularity: Granularity, moment: number): number {
  return beginOf(granularity, indexOf(granularity, moment));
}

/** When the bucket after that of a moment begins. */
export function bucketAfter(granularity: Granularity, moment: number): number {
  return beginOf(granularity, indexOf(granularity, moment) + 1);
}

function indexOf(granularity: Granularity, moment: number): number {
  if (granularity !== "month") return Math.floor(moment / (granularity === "hour" ? HOUR_MS : DAY_MS));
  const date = new Date(moment);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

function beginOf(granularity: Granularity, index: number): number {
  if (granularity !== "month") return index * (granularity === "hour" ? HOUR_MS : DAY_MS);
  // Not Date.UTC, which takes the years 0 to 99 for those of the last century.
  return new Date(0).setUTCFullYear(Math.floor(index / 12), index % 12, 1);
}

/** @throws ApiError `invalid_request` where what is asked for contradicts itself. */
export function assertCapture({ final = true, over }: { final?: boolean; over?: string }): void {
  if (over !== "cap" || final) return;
  throw new ApiError("invalid_request", '`over: "cap"` is for final captures.');
}
