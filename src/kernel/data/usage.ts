import { type Static, Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { isoTime, timestampOfQuery } from "../time/date-time.ts";
import { HOUR_MS } from "../time/units.ts";
import { DATE_TIME_LENGTH_MAX, oneOf } from "./schema.ts";

const DAY_HOURS = 24;
/** Hours or days in the range of one request. */
const USAGE_BUCKETS_MAX = 1_000;

/** Query of usage by hour or day. */
export const UsageQuery = Type.Object({
  from: Type.Optional(
    Type.String({
      maxLength: DATE_TIME_LENGTH_MAX,
      description:
        "Start of the range, rounded down to the hour or day (UTC). Default: 24 hours before `to`.",
    }),
  ),
  to: Type.Optional(
    Type.String({
      maxLength: DATE_TIME_LENGTH_MAX,
      description: "End of the range, exclusive. Default: now.",
    }),
  ),
  granularity: Type.Optional(
    oneOf(["hour", "day"], { errorMessage: "must be hour or day", default: "hour" }),
  ),
});
export type UsageQuery = Static<typeof UsageQuery>;

/** The hour of a time, counted from 1970. */
export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS);
}

/** What is counted, by hours. */
export interface CountedHours<Row extends { readonly hour: number }, Bucket> {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly retentionMs: number;
  /** The counts from one hour until before another, in any order. An hour can occur several times. */
  hours(from: number, to: number): readonly Row[];
  /** A bucket that begins at this time (RFC 3339). */
  empty(from: string): Bucket;
  add(bucket: Bucket, row: Row): void;
}

/** Usage by hour or day, UTC, oldest first, without empty ones. @throws ApiError `validation_error` */
export function usageOf<Row extends { readonly hour: number }, Bucket>(
  { from, to, granularity = "hour" }: UsageQuery,
  { now, retentionMs, hours, empty, add }: CountedHours<Row, Bucket>,
) {
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
  const oldestStored = Math.max(first, hourOf(now - retentionMs));
  for (const row of hours(oldestStored, end)) {
    const bucketStart = bucketStartOf(row.hour, step);
    const bucket = buckets.get(bucketStart) ?? empty(isoTime(bucketStart * HOUR_MS));
    buckets.set(bucketStart, bucket);
    add(bucket, row);
  }
  const data = [...buckets.entries()].sort(([a], [b]) => a - b).map(([, bucket]) => bucket);
  return { from: isoTime(first * HOUR_MS), to: isoTime(until), granularity, data };
}

function bucketStartOf(hour: number, step: number): number {
  return hour - (hour % step);
}
