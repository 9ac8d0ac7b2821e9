import type { MonitorCheck } from "../../../../client/generated/api.ts";
import type { Bar } from "../../charts/bar.ts";

/** Checks with more than this multiple of the median latency are drawn as slow. */
const SLOW = 3;
/** Below this latency in milliseconds a check is never slow: a target that responds in 2 ms often varies by more. */
const SLOW_MIN_MS = 100;
const SLOW_HEIGHT = 0.6;
const DOWN_HEIGHT = 0.3;

/** Checks, newest first as the API returns them, as bars: a worse state is a shorter bar. */
export function barsOf(checks: readonly MonitorCheck[]): Bar[] {
  const usual = median(checks.filter(({ status }) => status === "up").map(({ latency_ms }) => latency_ms));
  return checks.toReversed().map(({ status, latency_ms, error, checked_at }) => {
    const when = new Date(checked_at * 1000).toLocaleString("en-GB");
    if (status === "down")
      return { height: DOWN_HEIGHT, tone: "bad", title: `${when}: down, ${error ?? "no response"}` };
    const isSlow = latency_ms > Math.max(SLOW_MIN_MS, usual * SLOW);
    return {
      height: isSlow ? SLOW_HEIGHT : 1,
      tone: isSlow ? "warn" : "good",
      title: `${when}: up, ${latency_ms} ms`,
    };
  });
}

/** The same in words. */
export function barsLabel(checks: readonly MonitorCheck[]): string {
  const up = checks.filter(({ status }) => status === "up").length;
  return checks.length === 0 ? "No checks yet" : `${up} of the last ${checks.length} checks were up`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
