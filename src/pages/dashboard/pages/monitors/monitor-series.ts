import type {
  IncidentSummary,
  MonitorHistory,
  MonitorSeries,
  MonitorStatus,
} from "../../../../client/generated/api.ts";
import type { Point, Span } from "../../charts/axis.ts";
import { count, DAY_MS, duration } from "../../core/format.ts";
import { dayText, shortTime } from "../../core/times.ts";

/** Ranges of the chart. */
export const RANGES = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
] as const;
export type Range = (typeof RANGES)[number][0];

/**
 * One point for each bucket of a range, also for those without checks. A bucket is bad if one of its checks failed, or if it is
 * within an outage: those of a heartbeat are silent. Failures interrupt the line of latencies, as
 * times without checks do; but pings of a heartbeat may be days apart.
 */
export function pointsOf(
  { from, to, bucket_ms, buckets }: MonitorSeries,
  isHeartbeat: boolean,
  outages: readonly Span[] = [],
): Point[] {
  const byTime = new Map(buckets.map((bucket) => [bucket.at * 1000, bucket]));
  return Array.from({ length: ((to - from) * 1000) / bucket_ms }, (_, index) => {
    const at = from * 1000 + index * bucket_ms;
    const bucket = byTime.get(at);
    const when = bucketText(at, bucket_ms);
    const isOut = outages.some((span) => span.from < at + bucket_ms && span.to > at);
    return bucket === undefined
      ? silentPoint({ at, when, isHeartbeat, isOut })
      : checkedPoint({ at, when, isHeartbeat, isOut }, bucket);
  });
}

/** A bucket of a chart. */
interface Bucket {
  readonly at: number;
  readonly when: string;
  readonly isHeartbeat: boolean;
  /** Whether it is within an outage. */
  readonly isOut: boolean;
}

function silentPoint({ at, when, isHeartbeat, isOut }: Bucket): Point {
  const value = isHeartbeat ? {} : { value: null };
  if (isOut) return { at, ...value, tone: "bad", label: `${when}: down` };
  return { at, ...value, label: `${when}: ${isHeartbeat ? "no pings" : "no checks"}` };
}

function checkedPoint(
  { at, when, isHeartbeat, isOut }: Bucket,
  { checks, up, latency_ms, p95_ms }: MonitorSeries["buckets"][number],
): Point {
  // A ping without a start has no duration; a run is measured in seconds.
  const ms = isHeartbeat && latency_ms === 0 ? null : latency_ms;
  const label = `${when}: ${up} of ${count(checks, isHeartbeat ? "ping" : "check")} up`;
  const lengthOf = (length: number): string => (isHeartbeat ? duration(length) : `${length} ms`);
  const most = p95_ms === null ? "" : `, 95 % below ${lengthOf(p95_ms)}`;
  const perUnit = isHeartbeat ? 1000 : 1;
  return {
    at,
    value: ms === null ? null : ms / perUnit,
    most: p95_ms === null ? null : p95_ms / perUnit,
    tone: up === checks && !isOut ? "good" : "bad",
    label: ms === null ? label : `${label}, ${lengthOf(ms)}${most}`,
  };
}

/** `22 Nov, 02:30 CET`; a day in UTC, as its checks are counted. */
function bucketText(at: number, bucketMs: number): string {
  return bucketMs === DAY_MS ? `${dayText(at, true)} (UTC)` : shortTime(at);
}

/** Outages of a monitor within the time of a chart. */
export function spansOf(
  incidents: readonly IncidentSummary[],
  { from, to }: MonitorSeries,
  now: number,
): Span[] {
  return incidents
    .filter(({ kind }) => kind === "auto")
    .map(({ started_at, resolved_at }) => {
      const end = resolved_at === null ? now : Date.parse(resolved_at);
      const label = duration(end - Date.parse(started_at));
      return { from: Math.max(from * 1000, Date.parse(started_at)), to: Math.min(to * 1000, end), label };
    })
    .filter((span) => span.to > span.from);
}

/** Average latency of a series in milliseconds; null if it is not known. */
export function averageOf({ buckets }: MonitorSeries): number | null {
  const known = buckets.filter(({ latency_ms }) => latency_ms !== null);
  const checks = known.reduce((sum, { up }) => sum + up, 0);
  const total = known.reduce((sum, { up, latency_ms }) => sum + up * (latency_ms ?? 0), 0);
  return checks === 0 ? null : Math.round(total / checks);
}

/** Days of the next shorter range. */
const SHORTER: Readonly<Record<Range, number>> = { "24h": 0, "7d": 1, "30d": 7, "90d": 30 };

/** Outages within a range; how much data there is, if a shorter range has all of it. */
export function outageText(
  { outages }: Pick<MonitorHistory, "outages">,
  range: Range,
  ageMs: number,
): string {
  const days = Math.floor(ageMs / DAY_MS);
  if (days < SHORTER[range]) return days === 0 ? "less than a day of data" : `${count(days, "day")} of data`;
  const { count: number, duration_ms } = outages[range];
  return number === 0 ? "no outages" : `${count(number, "outage")}, ${duration(duration_ms)}`;
}

/** Since when the target has its status, epoch milliseconds; null if that is not known. */
export function statusSince(
  { status, active }: MonitorStatus,
  incidents: readonly IncidentSummary[],
): number | null {
  const newest = incidents.find(({ kind }) => kind === "auto");
  if (newest === undefined || !active) return null;
  const { started_at, resolved_at } = newest;
  if (status === "down") return resolved_at === null ? Date.parse(started_at) : null;
  return status === "up" && resolved_at !== null ? Date.parse(resolved_at) : null;
}
