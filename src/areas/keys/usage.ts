import { invalidField } from "../../kernel/errors.ts";
import { isoTime, timestampOfQuery } from "../../kernel/time/date-time.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { OUTCOMES, USAGE_BUCKETS_MAX, USAGE_RETENTION_MS } from "./domain.ts";
import { hourOf } from "./key-uses.ts";
import type { KeyUsage } from "./schema.ts";
import type { HourRow } from "./store.ts";

const DAY_HOURS = 24;

export interface UsageSpan {
  readonly from?: string;
  readonly to?: string;
  readonly granularity?: KeyUsage["granularity"];
}

type Bucket = KeyUsage["data"][number];

/**
 * Usage by hour or day, UTC. `hours` returns the counts from one hour until before another, in any order.
 * @throws ApiError `validation_error`
 */
export function usageOf(
  { from, to, granularity = "hour" }: UsageSpan,
  now: number,
  hours: (from: number, to: number) => readonly HourRow[],
): KeyUsage {
  const step = granularity === "hour" ? 1 : DAY_HOURS;
  const until = to === undefined ? now : timestampOfQuery("to", to);
  const start = from === undefined ? until - DAY_HOURS * HOUR_MS : timestampOfQuery("from", from);
  const first = bucketStartOf(hourOf(start), step);
  if (start >= until) throw invalidField("from", "must be before to");
  // The hour of `to` is included, unless `to` is its start. The current hour is always included.
  const end = to === undefined ? hourOf(until) + 1 : Math.ceil(until / HOUR_MS);
  if ((end - first) / step > USAGE_BUCKETS_MAX) {
    throw invalidField("from", `must be at most ${USAGE_BUCKETS_MAX} ${granularity}s before to`);
  }
  const buckets = new Map<number, Bucket>();
  const oldestStored = Math.max(first, hourOf(now - USAGE_RETENTION_MS));
  for (const { hour, outcome, count } of hours(oldestStored, end)) {
    const bucketStart = bucketStartOf(hour, step);
    const bucket = buckets.get(bucketStart) ?? newBucket(bucketStart);
    buckets.set(bucketStart, bucket);
    add(bucket, outcome, count);
  }
  const data = [...buckets.entries()].sort(([a], [b]) => a - b).map(([, bucket]) => bucket);
  return { from: isoTime(first * HOUR_MS), to: isoTime(until), granularity, data };
}

function bucketStartOf(hour: number, step: number): number {
  return hour - (hour % step);
}

function newBucket(hour: number): Bucket {
  return { from: isoTime(hour * HOUR_MS), total: 0, valid: 0, errors: {} };
}

function add(bucket: Bucket, outcome: number, count: number): void {
  bucket.total += count;
  const name = OUTCOMES[outcome] ?? "valid";
  if (name === "valid") bucket.valid += count;
  else bucket.errors[name] = (bucket.errors[name] ?? 0) + count;
}
