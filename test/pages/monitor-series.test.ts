import { expect, test } from "bun:test";
import type { IncidentSummary, MonitorSeries, MonitorStatus } from "../../src/client/generated/api.ts";
import { pathOf } from "../../src/pages/dashboard/charts/axis.ts";
import { hourBars } from "../../src/pages/dashboard/charts/hours.ts";
import { duration, percent } from "../../src/pages/dashboard/core/format.ts";
import {
  averageOf,
  outageText,
  pointsOf,
  spansOf,
  statusSince,
} from "../../src/pages/dashboard/pages/monitors/monitor-series.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const FROM = Date.UTC(2026, 10, 22, 2, 0) / 1000;

/** Four buckets of ten minutes, the last one without checks. */
const SERIES: MonitorSeries = {
  from: FROM,
  to: FROM + 2400,
  bucket_ms: 10 * MINUTE_MS,
  latency: { p50_ms: 40, p95_ms: 80, p99_ms: 80 },
  buckets: [
    { at: FROM, checks: 2, up: 2, latency_ms: 40, p95_ms: 45 },
    { at: FROM + 600, checks: 2, up: 1, latency_ms: 70, p95_ms: 70 },
    { at: FROM + 1200, checks: 1, up: 0, latency_ms: null, p95_ms: null },
  ],
};
const scale = {
  x: (at: number) => (at / 1000 - FROM) / 60,
  y: (value: number) => value,
};

test("every bucket of the axis is a point; failures and times without checks interrupt the line", () => {
  const points = pointsOf(SERIES, false);
  expect(points.map(({ at }) => at / 1000 - FROM)).toEqual([0, 600, 1200, 1800]);
  expect(points.map(({ tone, value }) => [tone, value])).toEqual([
    ["good", 40],
    ["bad", 70],
    ["bad", null],
    [undefined, null],
  ]);
  expect(points.map(({ most }) => most)).toEqual([45, 70, null, undefined]);
  expect(points.map(({ label }) => label?.replace(/^.*?: /, ""))).toEqual([
    "2 of 2 checks up, 40 ms, 95 % below 45 ms",
    "1 of 2 checks up, 70 ms, 95 % below 70 ms",
    "0 of 1 check up",
    "no checks",
  ]);
  expect(pathOf(points, scale, false)).toBe("M0.0,40.0h0L10.0,70.0");
  const later = [...points, { at: (FROM + 2400) * 1000, value: 9 }];
  expect(pathOf(later, scale, false)).toBe("M0.0,40.0h0L10.0,70.0M40.0,9.0h0");
  expect(pathOf(points.slice(0, 2), scale, true)).toBe("M0.0,40.0h0H10.0V70.0");
  expect(averageOf(SERIES)).toBe(50);
  expect(averageOf({ ...SERIES, buckets: [] })).toBe(null);
});

test("a bucket within an outage is bad, whether or not it has checks", () => {
  const outage = { from: (FROM + 900) * 1000, to: (FROM + 1900) * 1000, label: "" };
  const tones = (isHeartbeat: boolean) => pointsOf(SERIES, isHeartbeat, [outage]).map(({ tone }) => tone);
  expect(tones(true)).toEqual(["good", "bad", "bad", "bad"]);
  expect(pointsOf(SERIES, true, [outage])[3]?.label).toEndWith(": down");
  expect(tones(false)).toEqual(["good", "bad", "bad", "bad"]);
});

test("pings of a heartbeat may be far apart, and only runs have a duration", () => {
  const buckets = [
    { at: FROM, checks: 1, up: 1, latency_ms: 95_000, p95_ms: 95_000 },
    { at: FROM + 600, checks: 1, up: 1, latency_ms: 0, p95_ms: null },
  ];
  const points = pointsOf({ ...SERIES, buckets }, true);
  expect(points.map(({ value }) => value)).toEqual([95, null, undefined, undefined]);
  expect(points[0]?.label).toEndWith("1 of 1 ping up, 1 min 35 s, 95 % below 1 min 35 s");
  expect(points[1]?.label).toEndWith("1 of 1 ping up");
  const apart = [points[0], points[2], { at: (FROM + 1800) * 1000, value: 80 }].flatMap((one) => one ?? []);
  expect(pathOf(apart, scale, false)).toBe("M0.0,95.0h0L30.0,80.0");
});

function incident(from: number, to: number | null, kind: "auto" | "manual" = "auto"): IncidentSummary {
  const time = (seconds: number) => new Date((FROM + seconds) * 1000).toISOString();
  return {
    kind,
    started_at: time(from),
    resolved_at: to === null ? null : time(to),
  } as IncidentSummary;
}

test("outages are marked within the axis, an open one up to now", () => {
  const now = (FROM + 2000) * 1000;
  const all = [incident(1800, null), incident(300, 900, "manual"), incident(-600, 60), incident(-900, -700)];
  expect(
    spansOf(all, SERIES, now).map(({ from, to, label }) => [from / 1000 - FROM, to / 1000 - FROM, label]),
  ).toEqual([
    [1800, 2000, "3 min 20 s"],
    [0, 60, "11 min"],
  ]);
  const monitor = (status: string, active = true) => ({ status, active }) as MonitorStatus;
  expect(statusSince(monitor("down"), all)).toBe((FROM + 1800) * 1000);
  expect(statusSince(monitor("up"), all.slice(1))).toBe((FROM + 60) * 1000);
  expect([statusSince(monitor("up"), []), statusSince(monitor("down", false), all)]).toEqual([null, null]);
});

test("a range says its outages, or how much data there is", () => {
  const total = { count: 2, duration_ms: 114 * MINUTE_MS };
  const none = { count: 0, duration_ms: 0 };
  const history = {
    outages: {
      "24h": none,
      "7d": { count: 1, duration_ms: 50_000 },
      "30d": total,
      "90d": total,
    },
  };
  const texts = (age: number) =>
    (["24h", "7d", "30d", "90d"] as const).map((range) => outageText(history, range, age));
  expect(texts(100 * DAY_MS)).toEqual([
    "no outages",
    "1 outage, 50 s",
    "2 outages, 1 h 54 min",
    "2 outages, 1 h 54 min",
  ]);
  expect(texts(10 * DAY_MS).slice(2)).toEqual(["2 outages, 1 h 54 min", "10 days of data"]);
  expect(texts(0).slice(0, 2)).toEqual(["no outages", "less than a day of data"]);
});

test.each([
  [999, "999 ms"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [59.5 * MINUTE_MS, "59 min 30 s"],
  [320 * MINUTE_MS, "5 h 20 min"],
  [2 * DAY_MS + 3_600_000, "2 d 1 h"],
])("%d ms is %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test("an hour with an outage is a red bar of full height, however short it was", () => {
  const bars = hourBars([null, 100, 99.99, 40, 0], FROM * 1000 + 10 * MINUTE_MS);
  expect(bars.map(({ tone }) => tone)).toEqual(["none", "good", "bad", "bad", "bad"]);
  expect(bars.slice(2).map(({ height }) => height)).toEqual([1, 1, 1]);
  for (const { height } of bars.slice(0, 2)) expect(height).toBeLessThan(1);
  expect(bars[3]?.title).toContain("40.00 % up");
});

test.each([
  [100, "100 %"],
  [99.999, "99.99 %"],
  [99.993, "99.99 %"],
  [99.31, "99.31 %"],
  [0, "0 %"],
  [null, "–"],
])("a share of %p is shown as %s", (share, text) => {
  expect(percent(share)).toBe(text);
});
