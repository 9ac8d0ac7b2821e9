import { afterEach, beforeEach, expect, test } from "bun:test";
import { dayStore } from "../../../src/areas/monitors/history/day-store.ts";
import { DAY_MS, DAYS_KEPT, Days, dayOf, FOLDED_AT_ONCE } from "../../../src/areas/monitors/history/days.ts";
import { factStore } from "../../../src/areas/monitors/history/state-store.ts";
import { incidentStore } from "../../../src/areas/monitors/incidents/store.ts";
import { maintenanceStore } from "../../../src/areas/monitors/maintenance/store.ts";
import { pageFacts } from "../../../src/areas/monitors/status-pages/facts.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { realPause } from "../../../src/kernel/time/clock.ts";
import { type AccountClient, startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const HOUR_MS = DAY_MS / 24;
/** Eleven minutes past midnight the days are folded. */
const FOLDED_AT_MS = 12 * 60_000;

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
  readonly checks: number;
  readonly up: number;
}

const db = () => server.server.kernel.db;
const folded = (): Row[] => db().all<Row>("SELECT day, checks, up FROM monitor_days ORDER BY day")();
/** What the hours say, the one that is being counted among them. */
const counted = (): Row[] =>
  db().all<Row>(
    `SELECT hour - hour % ${DAY_MS} AS day, sum(checks) AS checks, sum(up) AS up FROM (SELECT hour, checks, up FROM monitor_hours
     UNION ALL SELECT hour, hour_checks, hour_up FROM monitor_states) GROUP BY 1 ORDER BY 1`,
  )();

/** The last days on the page, today's last. */
async function shown(days: number): Promise<(number | null)[]> {
  await server.clock.advance(10_000);
  const { body } = await server.client(null).get("/status/days.json");
  const groups = body["groups"] as { monitors: { uptime_by_day: (number | null)[] }[] }[];
  return groups[0]?.monitors[0]?.uptime_by_day.slice(-days) ?? [];
}

const percents = (rows: readonly Row[]) =>
  rows.map(({ checks, up }) => Math.floor((up / checks) * 10_000) / 100);

test("a day is shown while it runs, and the same after it was folded", async () => {
  await server.clock.advance(HOUR_MS);
  expect(await shown(2)).toEqual([null, 100]);
  site.answers(503);
  await server.clock.advance(2 * HOUR_MS);
  site.answers(200);
  await server.clock.advance(HOUR_MS);
  const [today] = await shown(1);
  expect(today).toBeGreaterThan(45);
  expect(today).toBeLessThan(55);
  expect(folded()).toEqual([]);
  // Past midnight, and not folded yet.
  await server.clock.advance(DAY_MS - (server.clock.now() % DAY_MS) + 6 * 60_000);
  const before = await shown(2);
  expect(before).toEqual(percents(counted()));
  expect(folded()).toEqual([]);
  await server.clock.advance(FOLDED_AT_MS);
  expect(folded()).toEqual(counted().slice(0, 1));
  expect(await shown(2)).toEqual(before);
  // Once its hours are gone the figures of the day are all that is known of it.
  db().all("DELETE FROM monitor_hours")();
  expect(await shown(2)).toEqual(before);
  await server.clock.advance(DAY_MS);
  expect(folded().map(({ up, checks }) => up / checks)).toEqual([
    expect.closeTo((before[0] ?? 0) / 100, 2),
    1,
  ]);
});

test("what a start comes too late for is folded then, and nothing twice", async () => {
  await server.clock.advance(DAY_MS / 2 + FOLDED_AT_MS);
  expect(folded()).toHaveLength(1);
  await server.halt();
  await server.clock.advance(5 * DAY_MS);
  await server.start();
  await server.clock.advance(60_000);
  const [first, second] = counted();
  expect(folded()).toEqual([first, second] as Row[]);
  expect(await shown(7)).toEqual([100, 100, null, null, null, null, 100]);
  const was = folded();
  await server.restart();
  await server.clock.advance(HOUR_MS);
  expect(folded()).toEqual(was);
});

test("the hour that a paused monitor stopped in is in its day", async () => {
  await server.clock.advance(HOUR_MS / 2);
  await account.put(`/v1/pulse/${id}`, { active: false });
  await server.clock.advance(DAY_MS);
  expect(folded()).toEqual(counted());
  await account.put(`/v1/pulse/${id}`, { active: true });
  await server.clock.advance(DAY_MS);
  expect(folded().map(({ day }) => day)).toEqual(
    counted()
      .slice(0, 2)
      .map(({ day }) => day),
  );
  // On a long way of the test clock checks are recorded late: what is missing comes with the next fold.
  await server.clock.advance(DAY_MS);
  expect(folded().slice(0, 2)).toEqual(counted().slice(0, 2));
  expect(await shown(4)).toEqual([100, 100, 100, 100]);
});

test("planned work for every minute, many times over, holds nobody up while days are folded", async () => {
  const every = { schedule: "* * * * *", tz: "Europe/Berlin", duration_ms: 60_000 };
  const work = { title: "W", monitor_ids: [id], ...every };
  for (let count = 0; count < 100; count += 1)
    expect((await account.post("/v1/pulse/maintenance", work)).status).toBe(201);
  const facts = pageFacts({
    facts: factStore(db()),
    incidents: incidentStore(db()),
    maintenance: maintenanceStore(db()),
  });
  const day = dayOf(TEST_START_MS) + DAY_MS;
  const startedAt = performance.now();
  const { maintenanceMs } = facts.unobserved(1, day, day + DAY_MS);
  // Looking at all of them takes half a minute.
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(maintenanceMs).toBeGreaterThan(DAY_MS - HOUR_MS);
});

test("a fold that takes long goes on in another unit of work", async () => {
  for (let count = 0; count < 3; count += 1)
    await account.post("/v1/pulse", { url: site.url("/"), interval: 300_000, name: `n${count}` });
  await server.clock.advance(HOUR_MS);
  const slow = {
    unobserved() {
      realPause(60);
      return { observerMs: 0, maintenanceMs: 0 };
    },
  };
  const days = new Days(dayStore(db()), slow);
  const later = (tx: Tx): Tx => Object.assign(Object.create(tx), { now: TEST_START_MS + DAY_MS });
  const { writer } = server.server.kernel;
  expect(await writer.submit((tx) => days.fold(later(tx), 0))).toBe(1);
  expect(await writer.submit((tx) => days.fold(later(tx), 1))).toBe(2);
});

test("more monitors than one slice has", async () => {
  const late = await startTestServer({
    manualClock: { startMs: dayOf(TEST_START_MS) + DAY_MS - 60_000 },
    args: ["--allow-private-targets", "127.0.0.0/8"],
  });
  try {
    for (let count = 0; count <= FOLDED_AT_ONCE; count += 1)
      await late.operator.post("/v1/pulse", { url: site.url("/"), interval: 300_000 });
    await late.clock.advance(FOLDED_AT_MS + 60_000);
    const monitors = "SELECT count(DISTINCT monitor_ref) AS n FROM monitor_days";
    expect(late.server.kernel.db.number(monitors)()).toBe(FOLDED_AT_ONCE + 1);
  } finally {
    await late.stop();
  }
});

test("days are kept for 400, and go with their monitor", async () => {
  const today = dayOf(TEST_START_MS);
  const ages = [1, 2, DAYS_KEPT - 1, DAYS_KEPT, DAYS_KEPT + 100];
  const insert = db().change<[number]>("INSERT INTO monitor_days VALUES (1, ?, 10, 10, 0, 0)");
  await server.server.kernel.writer.submit((tx) => {
    for (const age of ages) insert(tx, today - age * DAY_MS);
  });
  await server.clock.advance(DAY_MS / 2 + FOLDED_AT_MS);
  const kept = ages.filter((age) => age < DAYS_KEPT).map((age) => today - age * DAY_MS);
  expect(folded().map(({ day }) => day)).toEqual([...kept.reverse(), today]);
  await account.delete(`/v1/pulse/${id}`);
  expect(folded()).toEqual([]);
});
