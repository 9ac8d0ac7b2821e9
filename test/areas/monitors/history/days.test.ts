import { afterEach, beforeEach, expect, test } from "bun:test";
import { dayStore } from "../../../../src/areas/monitors/history/day-store.ts";
import { MONITORS_PER_UNIT, RETENTION_DAYS } from "../../../../src/areas/monitors/history/days.ts";
import { INTERVALS_MAX } from "../../../../src/areas/monitors/history/intervals.ts";
import { unobserved } from "../../../../src/areas/monitors/history/unobserved.ts";
import { DAY_MS, dayOf } from "../../../../src/kernel/time/units.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const HOUR_MS = DAY_MS / 24;
/** Days are aggregated eleven minutes past midnight. */
const AGGREGATED_AT_MS = 12 * 60_000;

let server: TestServer;
let site: WebhookSink;
let account: AccountClient;
let id: string;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  site = new WebhookSink();
  account = await server.account();
  id = String((await account.post("/v1/pulse", { url: site.url("/"), interval: 300_000 })).body["id"]);
  const groups = [{ name: "", monitor_ids: [id] }];
  expect((await account.post("/v1/pulse/pages", { slug: "days", title: "D", groups })).status).toBe(201);
});
afterEach(async () => {
  await server.stop();
  site.stop();
});

interface Row {
  readonly day: number;
  readonly knownMs: number;
  readonly upMs: number;
}

const db = () => server.server.kernel.db;
const aggregated = (): Row[] =>
  db().all<Row>("SELECT day, known_ms AS knownMs, up_ms AS upMs FROM monitor_days ORDER BY day")();
/** Times from hours, the current hour included. */
const counted = (): Row[] =>
  db().all<Row>(
    `SELECT hour - hour % ${DAY_MS} AS day, sum(known_ms) AS knownMs, sum(up_ms) AS upMs FROM (SELECT hour, known_ms, up_ms FROM monitor_hours
     UNION ALL SELECT hour, hour_known_ms, hour_up_ms FROM monitor_states) GROUP BY 1 ORDER BY 1`,
  )();

/** Uptime of the last days on the page, today last. */
async function shown(days: number): Promise<(number | null)[]> {
  await server.clock.advance(10_000);
  const { body } = await server.client(null).get("/status/days.json");
  const groups = body["groups"] as { monitors: { uptime_by_day: (number | null)[] }[] }[];
  return groups[0]?.monitors[0]?.uptime_by_day.slice(-days) ?? [];
}

async function plan(schedule: object): Promise<void> {
  const { status, text } = await account.post("/v1/pulse/maintenance", {
    title: "W",
    monitor_ids: [id],
    ...schedule,
  });
  expect(status, text).toBe(201);
}

const plans = async () =>
  (await account.get("/v1/pulse/maintenance")).body["maintenance"] as { readonly id: string }[];

const dayAfterStart = () => {
  const from = dayOf(TEST_START_MS) + DAY_MS;
  return unobserved(dayStore(db()), 1, { from, to: from + DAY_MS });
};

const percents = (rows: readonly Row[]) =>
  rows.map(({ knownMs, upMs }) => Math.floor((upMs * 10_000) / knownMs) / 100);

test("the current day is shown, and shows the same after it is aggregated", async () => {
  await server.clock.advance(HOUR_MS);
  expect(await shown(2)).toEqual([null, 100]);
  site.answers(503);
  await server.clock.advance(2 * HOUR_MS);
  site.answers(200);
  await server.clock.advance(HOUR_MS);
  const [today] = await shown(1);
  expect(today).toBeGreaterThan(45);
  expect(today).toBeLessThan(55);
  expect(aggregated()).toEqual([]);
  // After midnight, before the aggregation.
  await server.clock.advance(DAY_MS - (server.clock.now() % DAY_MS) + 6 * 60_000);
  const before = await shown(2);
  expect(before).toEqual(percents(counted()));
  expect(aggregated()).toEqual([]);
  await server.clock.advance(AGGREGATED_AT_MS);
  expect(aggregated()).toEqual(counted().slice(0, 1));
  expect(await shown(2)).toEqual(before);
  // Without its hours, the stored counts of the day are shown.
  db().all("DELETE FROM monitor_hours")();
  expect(await shown(2)).toEqual(before);
  await server.clock.advance(DAY_MS);
  expect(aggregated().map(({ upMs, knownMs }) => upMs / knownMs)).toEqual([
    expect.closeTo((before[0] ?? 0) / 100, 2),
    1,
  ]);
});

test("a start aggregates days that were missed, and none twice", async () => {
  await server.clock.advance(DAY_MS / 2 + AGGREGATED_AT_MS);
  expect(aggregated()).toHaveLength(1);
  await server.halt();
  await server.clock.advance(5 * DAY_MS);
  await server.start();
  await server.clock.advance(60_000);
  const days = (rows: readonly Row[]) => rows.map(({ day }) => day);
  // Its last check stands until the next one, which the next aggregation counts.
  expect(days(aggregated())).toEqual(days(counted().slice(0, 2)));
  expect(await shown(7)).toEqual([100, 100, null, null, null, null, 100]);
  const was = aggregated();
  await server.restart();
  await server.clock.advance(HOUR_MS);
  expect(aggregated()).toEqual(was);
});

test("the last hour before a pause belongs to its day", async () => {
  await server.clock.advance(HOUR_MS / 2);
  await account.put(`/v1/pulse/${id}`, { active: false });
  await server.clock.advance(DAY_MS);
  expect(aggregated()).toEqual(counted());
  await account.put(`/v1/pulse/${id}`, { active: true });
  await server.clock.advance(DAY_MS);
  expect(aggregated().map(({ day }) => day)).toEqual(
    counted()
      .slice(0, 2)
      .map(({ day }) => day),
  );
  // When the test clock advances far, checks are recorded late: the next aggregation adds them.
  await server.clock.advance(DAY_MS);
  expect(aggregated().slice(0, 2)).toEqual(counted().slice(0, 2));
  expect(await shown(4)).toEqual([100, 100, 100, 100]);
});

test("maintenance for every minute, many times, does not hold the event loop", async () => {
  const every = { schedule: "* * * * *", tz: "Europe/Berlin", duration_ms: 60_000 };
  for (let count = 0; count < 100; count += 1) await plan(every);
  let unobservedOfDay = await dayAfterStart();
  const turn = () => longestTurnMs(async () => (unobservedOfDay = await dayAfterStart()));
  expect(await leastMs(TURN_MS_MAX, turn)).toBeLessThanOrEqual(TURN_MS_MAX);
  expect(unobservedOfDay.maintenanceMs).toBeGreaterThan(DAY_MS - HOUR_MS);
});

test("overlapping and adjoining maintenance windows count once, separate ones up to a limit", async () => {
  // Every window adjoins the next one.
  await plan({ schedule: "*/30 * * * *", duration_ms: 30 * 60_000 });
  expect(await dayAfterStart()).toEqual({ observerMs: 0, maintenanceMs: DAY_MS });
  for (const { id: planned } of await plans()) await account.delete(`/v1/pulse/maintenance/${planned}`);
  // 48 windows, and 24 that overlap half of them.
  await plan({ schedule: "*/30 * * * *", duration_ms: 60_000 });
  await plan({ schedule: "0 * * * *", duration_ms: 120_000 });
  expect((await dayAfterStart()).maintenanceMs).toBe((24 + 2 * 24) * 60_000);
  // Of 24 more, two are counted.
  await plan({ schedule: "45 * * * *", duration_ms: 60_000 });
  expect((await dayAfterStart()).maintenanceMs).toBe((24 + 2 * 24 + INTERVALS_MAX - 48) * 60_000);
});

test("aggregates more monitors than one unit of work has", async () => {
  const late = await startTestServer({
    manualClock: { startMs: dayOf(TEST_START_MS) + DAY_MS - 60_000 },
    args: ["--allow-private-targets", "127.0.0.0/8"],
  });
  try {
    for (let count = 0; count <= MONITORS_PER_UNIT; count += 1)
      await late.operator.post("/v1/pulse", { url: site.url("/"), interval: 300_000 });
    await late.clock.advance(AGGREGATED_AT_MS + 60_000);
    const monitors = "SELECT count(DISTINCT monitor_ref) AS n FROM monitor_days";
    expect(late.server.kernel.db.number(monitors)()).toBe(MONITORS_PER_UNIT + 1);
  } finally {
    await late.stop();
  }
});

test("days are stored for 400 days, and deleted with their monitor", async () => {
  const today = dayOf(TEST_START_MS);
  const ages = [1, 2, RETENTION_DAYS - 1, RETENTION_DAYS, RETENTION_DAYS + 100];
  const insert = db().change<[number]>(
    "INSERT INTO monitor_days (monitor_ref, day, checks, up, observer_ms, maintenance_ms) VALUES (1, ?, 10, 10, 0, 0)",
  );
  await server.server.kernel.writer.submit((tx) => {
    for (const age of ages) insert(tx, today - age * DAY_MS);
  });
  await server.clock.advance(DAY_MS / 2 + AGGREGATED_AT_MS);
  const kept = ages.filter((age) => age < RETENTION_DAYS).map((age) => today - age * DAY_MS);
  expect(aggregated().map(({ day }) => day)).toEqual([...kept.reverse(), today]);
  await account.delete(`/v1/pulse/${id}`);
  expect(aggregated()).toEqual([]);
});
