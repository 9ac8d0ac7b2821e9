import { invalidField } from "../../../kernel/errors.ts";
import { DAY_MS, HOUR_MS } from "../../../kernel/time/units.ts";
import type { Granularity, UsageQuery } from "./schema.ts";

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
  requested: { readonly from: number | null; readonly to: number | null },
  now: number,
): UsageRange {
  // Includes the current millisecond.
  const until = requested.to ?? now + 1;
  // A range that ends within a bucket includes the complete bucket.
  const to = bucketAfter(granularity, until - 1);
  const from = bucketOf(granularity, requested.from ?? Math.max(EARLIEST_MS, until - DEFAULT_RANGE_MS));
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
