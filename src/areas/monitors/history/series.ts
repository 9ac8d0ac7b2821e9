import {
  type Latencies,
  latenciesOf,
  NO_LATENCIES,
  percentilesOf,
  sumOfLatencies,
} from "../../../kernel/data/latencies.ts";
import { DAY_MS, dayOf, HOUR_MS, MINUTE_MS, secondsOf } from "../../../kernel/time/units.ts";
import { type HourCount, hourOf, NO_CHECKS, sumOf } from "../domain.ts";
import { LOCAL } from "../options.ts";
import type { MonitorRange, MonitorSeries } from "../schema.ts";
import type { Bucket, CheckBucket, CheckStore, MonitorRow } from "../store.ts";
import { hasLatency } from "../types.ts";
import type { Days } from "./days.ts";

/** Length of each range in milliseconds. */
export const RANGES: Readonly<Record<MonitorRange, number>> = {
  "24h": DAY_MS,
  "7d": 7 * DAY_MS,
  "30d": 30 * DAY_MS,
  "90d": 90 * DAY_MS,
};

/** Lengths of buckets, smallest first: at most 180 in a range. The smallest one that is not below the interval is used. */
const BUCKETS_MS: Readonly<Record<MonitorRange, readonly number[]>> = {
  "24h": [10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS],
  "7d": [HOUR_MS, 6 * HOUR_MS, DAY_MS],
  "30d": [4 * HOUR_MS, DAY_MS],
  "90d": [DAY_MS],
};

/**
 * Most checks that are walked for one series: those of a day at the shortest interval, 5,760, and some manual ones. Above it
 * (a heartbeat can be pinged every second), buckets of hours come from the hourly counts. It takes 8 ms.
 */
export const WALKED_CHECKS_MAX = 6_000;

export interface SeriesDeps {
  readonly checks: Pick<CheckStore, "bucketsByProbe" | "bucketsOfChecks" | "hoursSince">;
  readonly days: Pick<Days, "since">;
}

/** Counts the checks of a monitor in buckets of equal length, the last of which contains `now`. Empty buckets are omitted. */
export function seriesOf(
  deps: SeriesDeps,
  monitor: MonitorRow,
  now: number,
  range: MonitorRange,
): MonitorSeries {
  const sizes = BUCKETS_MS[range];
  const bucketMs = sizes.find((size) => size >= monitor.settings.interval) ?? Number(sizes.at(-1));
  return (
    (bucketMs < HOUR_MS ? fromChecks(deps, monitor, rangeOf(now, range, bucketMs)) : null) ??
    fromCounts(deps, monitor, rangeOf(now, range, Math.max(bucketMs, HOUR_MS)))
  );
}

/** The same for each of the probes that have checked a monitor on the last day, from its last checks. */
export function seriesByProbe(
  { checks }: SeriesDeps,
  monitor: MonitorRow,
  now: number,
): Record<string, MonitorSeries> {
  const { ref, lastCheck, settings } = monitor;
  const sizes = BUCKETS_MS["24h"];
  const bucketMs = sizes.find((size) => size >= settings.interval) ?? Number(sizes.at(-1));
  const range = rangeOf(now, "24h", bucketMs);
  const walk = { ref, lastCheck, from: range.from, bucketMs, walkedMax: WALKED_CHECKS_MAX };
  const buckets = Map.groupBy(checks.bucketsByProbe(walk), ({ probe }) => probe ?? LOCAL);
  return Object.fromEntries(
    [...buckets].map(([name, ofProbe]) => [
      name,
      viewOf(
        range,
        ofProbe.map((bucket) => counted(monitor, bucket)),
      ),
    ]),
  );
}

interface BucketRange {
  /** Start of the first bucket, epoch milliseconds. */
  readonly from: number;
  /** End of the last bucket, epoch milliseconds. */
  readonly to: number;
  readonly bucketMs: number;
  readonly now: number;
}

function rangeOf(now: number, range: MonitorRange, bucketMs: number): BucketRange {
  const to = now - (now % bucketMs) + bucketMs;
  return { from: to - RANGES[range], to, bucketMs, now };
}

/** From the checks themselves; null if there are too many of them. */
function fromChecks({ checks }: SeriesDeps, monitor: MonitorRow, range: BucketRange) {
  const { ref, lastCheck } = monitor;
  const { from, bucketMs } = range;
  const buckets = checks.bucketsOfChecks({ ref, lastCheck, from, bucketMs, walkedMax: WALKED_CHECKS_MAX });
  const walked = buckets.reduce((sum, bucket) => sum + bucket.walked, 0);
  if (walked >= WALKED_CHECKS_MAX) return null;
  return viewOf(
    range,
    buckets.map((bucket) => counted(monitor, bucket)),
  );
}

function counted({ settings }: MonitorRow, { durations, ...bucket }: CheckBucket): Bucket {
  const checksMs = durations === null ? [] : durations.split(" ").map(Number);
  return { ...bucket, latencies: latenciesOf(checksMs.filter((ms) => hasLatency(settings.type, ms))) };
}

/** From hourly counts, or from daily ones for buckets of a day. */
function fromCounts({ checks, days }: SeriesDeps, monitor: MonitorRow, range: BucketRange): MonitorSeries {
  const { from, bucketMs, now } = range;
  if (bucketMs === DAY_MS)
    return viewOf(
      range,
      [...days.since(monitor, dayOf(from), now).values()].map(({ day, ...counts }) => ({
        ...counts,
        at: day,
      })),
    );
  const buckets = new Map<number, Bucket & HourCount>();
  for (const count of [...checks.hoursSince(monitor.ref, hourOf(from)), monitor]) {
    const at = count.hour - (count.hour % bucketMs);
    if (count.hour >= from) buckets.set(at, { ...count, at, ...sumOf(buckets.get(at) ?? NO_CHECKS, count) });
  }
  return viewOf(range, [...buckets.values()]);
}

function viewOf({ from, to, bucketMs }: BucketRange, buckets: readonly Bucket[]): MonitorSeries {
  return {
    from: secondsOf(from),
    to: secondsOf(to),
    bucket_ms: bucketMs,
    latency: totalOf(buckets),
    buckets: buckets
      .filter(({ checks }) => checks > 0)
      .sort((a, b) => a.at - b.at)
      .map(({ at, checks, up, latencySum, latencies }) => ({
        at: secondsOf(at),
        checks,
        up,
        latency_ms: up === 0 || latencySum === null ? null : Math.round(latencySum / up),
        p95_ms: latencies === null ? null : (percentilesOf(latencies, [0.95])[0] ?? null),
      })),
  };
}

/** The percentiles of all buckets together; null if some have none, or their latencies were not recorded. */
function totalOf(buckets: readonly Bucket[]): MonitorSeries["latency"] {
  const all = buckets.reduce<Latencies | null>(
    (sum, { checks, latencies }) =>
      sum === null || (latencies === null && checks > 0)
        ? null
        : sumOfLatencies(sum, latencies ?? NO_LATENCIES),
    NO_LATENCIES,
  );
  const [p50_ms = null, p95_ms = null, p99_ms = null] = percentilesOf(all ?? NO_LATENCIES, [0.5, 0.95, 0.99]);
  return { p50_ms, p95_ms, p99_ms };
}
