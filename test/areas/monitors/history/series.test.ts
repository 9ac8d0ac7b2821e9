import { afterEach, beforeEach, expect, test } from "bun:test";
import { OUTAGES_MAX } from "../../../../src/areas/monitors/history/history.ts";
import { WALKED_CHECKS_MAX } from "../../../../src/areas/monitors/history/series.ts";
import type { MonitorHistory, MonitorRange } from "../../../../src/areas/monitors/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const RANGES: readonly MonitorRange[] = ["24h", "7d", "30d", "90d"];

let server: TestServer;
let site: WebhookSink;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  site = new WebhookSink();
  account = await server.account();
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

async function create(interval: number): Promise<string> {
  const { body } = await account.post("/v1/pulse", { url: site.url("/"), interval });
  return String(body["id"]);
}

async function read(id: string, range: MonitorRange) {
  const { status, body, text } = await account.get(`/v1/pulse/${id}/history?range=${range}&limit=1`);
  expect(status, text).toBe(200);
  const history = body as unknown as MonitorHistory;
  const series = history.series as NonNullable<MonitorHistory["series"]>;
  const { from, to, bucket_ms, buckets } = series;
  const sum = (of: "checks" | "up") => buckets.reduce((total, bucket) => total + bucket[of], 0);
  expect((to - from) * 1000).toBe(Number.parseInt(range, 10) * (range === "24h" ? HOUR_MS : DAY_MS));
  expect(buckets.every(({ at }) => at >= from && at < to && (at * 1000) % bucket_ms === 0)).toBe(true);
  expect(buckets.map(({ at }) => at)).toEqual(buckets.map(({ at }) => at).sort((a, b) => a - b));
  return { ...history, ...series, sums: [sum("checks"), sum("up")] };
}

/** Changes stored rows, to simulate months. */
const change = (sql: string, ...values: (number | string)[]) =>
  server.server.kernel.writer.submit((tx) =>
    server.server.kernel.db.change<typeof values>(sql)(tx, ...values),
  );

test("percentiles of latencies are known in every range, also once hours and days are closed", async () => {
  const id = await create(5 * MINUTE_MS);
  await server.clock.advance(3 * HOUR_MS);
  // Nine of ten checks take 40 ms, the others 400 ms.
  await change("UPDATE monitor_checks SET latency_ms = CASE WHEN sequence % 10 = 0 THEN 400 ELSE 40 END");
  await change("UPDATE monitor_hours SET latencies = '39:11 63:1'");
  await change("UPDATE monitor_states SET hour_latencies = '39:11 63:1'");
  // Within 5 % of 40 and 400.
  const latency = { p50_ms: 39, p95_ms: 386, p99_ms: 386 };
  for (const range of RANGES) expect((await read(id, range)).latency, range).toEqual(latency);
  await server.clock.advance(2 * DAY_MS);
  await change("UPDATE monitor_hours SET latencies = '39:11 63:1'");
  await change("UPDATE monitor_days SET latencies = '39:264 63:24'");
  await change("UPDATE monitor_states SET hour_latencies = '39:11 63:1'");
  for (const range of ["7d", "30d", "90d"] as const)
    expect((await read(id, range)).latency, range).toEqual(latency);
  // What an earlier version has counted has none: no number stands for a part of the time.
  await change(
    "UPDATE monitor_hours SET latencies = NULL WHERE hour = (SELECT max(hour) FROM monitor_hours)",
  );
  const unknown = { p50_ms: null, p95_ms: null, p99_ms: null };
  for (const range of ["7d", "30d", "90d"] as const) {
    const { buckets, latency: of } = await read(id, range);
    expect(of, range).toEqual(unknown);
    expect(
      buckets.filter(({ p95_ms }) => p95_ms === null),
      range,
    ).toHaveLength(1);
  }
});

test("counts checks and latencies in buckets of every range, and outages with their duration", async () => {
  const id = await create(5 * MINUTE_MS);
  await server.clock.advance(2 * HOUR_MS);
  site.answers(503);
  await server.clock.advance(HOUR_MS);
  site.answers(200);
  await server.clock.advance(HOUR_MS);
  const day = await read(id, "24h");
  expect([day.bucket_ms, day.to * 1000 - server.clock.now()].map((ms) => ms <= 10 * MINUTE_MS)).toEqual([
    true,
    true,
  ]);
  const [checks = 0, up = 0] = day.sums;
  expect(checks - up).toBe(12);
  expect(day.uptime["90d"]).toBe(day.uptime["24h"]);
  // An average is known where a check was up, and nowhere else.
  expect(day.buckets.filter(({ latency_ms }) => latency_ms === null)).toEqual(
    day.buckets.filter(({ up }) => up === 0),
  );
  expect(day.buckets.filter(({ up }) => up === 0).length).toBeGreaterThanOrEqual(5);
  const outage = { count: 1, duration_ms: expect.closeTo(HOUR_MS, -6) };
  expect(day.outages).toEqual({ "24h": outage, "7d": outage, "30d": outage, "90d": outage });
  for (const [range, bucketMs] of [
    ["7d", HOUR_MS],
    ["30d", 4 * HOUR_MS],
    ["90d", DAY_MS],
  ] as const)
    expect(await read(id, range)).toMatchObject({ bucket_ms: bucketMs, sums: day.sums });
  // A day later, the day has no outage. One that begins before a range and ends in it counts from the start of the range.
  await server.clock.advance(DAY_MS - 90 * MINUTE_MS);
  const later = (await read(id, "24h")).outages;
  expect(later["24h"]).toEqual({ count: 1, duration_ms: expect.closeTo(HOUR_MS / 2, -6) });
  await server.clock.advance(HOUR_MS);
  expect((await read(id, "7d")).outages).toMatchObject({
    "24h": { count: 0, duration_ms: 0 },
    "7d": { count: 1 },
  });
  // Without a range, there is no series. An outage lasts until now while the target is down.
  site.answers(503);
  await server.clock.advance(10 * MINUTE_MS);
  const { body } = await account.get(`/v1/pulse/${id}/history`);
  expect(body["series"]).toBe(undefined);
  expect(body["outages"]).toMatchObject({ "24h": { count: 1 }, "90d": { count: 2 } });
  expectError(await account.get(`/v1/pulse/${id}/history?range=1h`), "validation_error");
}, 60_000);

test("buckets are not shorter than the interval, and days outlive their hours", async () => {
  const [often, hourly, daily] = [
    await create(15 * MINUTE_MS),
    await create(2 * HOUR_MS),
    await create(DAY_MS),
  ];
  const sizes = async (id: string) =>
    Promise.all(RANGES.map(async (range) => (await read(id, range)).bucket_ms / MINUTE_MS));
  expect(await sizes(often)).toEqual([30, 60, 240, 1440]);
  expect(await sizes(hourly)).toEqual([360, 360, 240, 1440]);
  expect(await sizes(daily)).toEqual([360, 1440, 1440, 1440]);
  // In steps: checks of one day are then not recorded after the next one was counted.
  for (let hour = 0; hour < 49; hour += 1) await server.clock.advance(HOUR_MS);
  const before = await read(often, "90d");
  expect(before.buckets.every(({ latency_ms }) => latency_ms !== null)).toBe(true);
  await change("DELETE FROM monitor_hours WHERE hour < ?", server.clock.now() - 30 * HOUR_MS);
  expect((await read(often, "90d")).sums).toEqual(before.sums);
  // Hours of an earlier version have no latencies.
  await change("UPDATE monitor_hours SET latency = NULL");
  const [first] = (await read(often, "7d")).buckets;
  expect(first).toMatchObject({ checks: 4, up: 4, latency_ms: null });
}, 60_000);

/** Stores checks of the first monitor every 14 seconds up to now. */
async function storeChecks(count: number): Promise<void> {
  const { db, writer, clock } = server.server.kernel;
  const insert = db.change<[number, number, number]>(
    "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms) VALUES (?, 1, ?, ?, 1, 0, 9)",
  );
  await writer.submit((tx) => {
    for (let at = 1; at <= count; at += 1)
      insert(tx, 1000 + at, at === 1 ? 0 : 999 + at, clock.now() - (count - at) * 14_000);
  });
  await change("UPDATE monitor_states SET last_check = ? WHERE monitor_ref = 1", 1000 + count);
}

test("the largest history is read without holding the event loop; above its limits, hours and the newest outages count", async () => {
  const { body } = await account.post("/v1/pulse", { type: "heartbeat", period_ms: DAY_MS });
  const id = String(body["id"]);
  await server.clock.advance(HOUR_MS);
  await storeChecks(WALKED_CHECKS_MAX - 1);
  const now = server.clock.now();
  const hour = now - (now % HOUR_MS);
  const { db, writer } = server.server.kernel;
  const statement = (sql: string) => db.change<[number]>(sql);
  const hours = statement(
    "INSERT INTO monitor_hours (monitor_ref, hour, checks, up, latency) VALUES (1, ?, 240, 240, 2400)",
  );
  const days = statement(
    "INSERT INTO monitor_days (monitor_ref, day, checks, up, observer_ms, maintenance_ms, latency) VALUES (1, ?, 5760, 5760, 0, 0, 57600)",
  );
  const incident = statement(
    `INSERT INTO incidents (incident_id, project_ref, monitor_ref, title, impact, status, monitor_ids, started_at, resolved_at, public)
     SELECT 'inc_' || $at, project_ref, 1, 'd', 'outage', 'resolved', '[]', $at, $at + 60000, 0 FROM monitor_states WHERE monitor_ref = 1`.replaceAll(
      "$at",
      "?1",
    ),
  );
  const named = db.change<[string]>("INSERT INTO incident_monitors SELECT ?, max(ref) FROM incidents");
  const fail = (at: number) =>
    writer.submit((tx) => {
      incident(tx, at);
      named(tx, id);
    });
  await writer.submit((tx) => {
    for (let age = 1; age < 720; age += 1) hours(tx, hour - age * HOUR_MS);
    for (let age = 1; age < 400; age += 1) days(tx, now - (now % DAY_MS) - age * DAY_MS);
    for (let age = OUTAGES_MAX - 1; age >= 1; age -= 1) {
      incident(tx, now - age * HOUR_MS);
      named(tx, id);
    }
  });
  const total = async () => (await read(id, "90d")).outages["90d"].count;
  expect(await total()).toBe(OUTAGES_MAX - 1);
  await fail(now - 2);
  expect(await total()).toBe(OUTAGES_MAX);
  await fail(now - 1);
  expect(await total()).toBe(OUTAGES_MAX);
  expect(await read(id, "24h")).toMatchObject({ bucket_ms: 10 * MINUTE_MS, sums: [5_999, 5_999] });
  for (const range of RANGES) {
    const turn = () => longestTurnMs(() => account.get(`/v1/pulse/${id}/history?range=${range}&limit=100`));
    expect(await leastMs(TURN_MS_MAX, turn), range).toBeLessThanOrEqual(TURN_MS_MAX);
  }
  await change("DELETE FROM monitor_checks WHERE sequence > 1000");
  await storeChecks(WALKED_CHECKS_MAX);
  expect(await read(id, "24h")).toMatchObject({ bucket_ms: HOUR_MS, sums: [23 * 240, 23 * 240] });
}, 60_000);
