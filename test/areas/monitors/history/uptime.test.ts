import { afterEach, beforeEach, expect, test } from "bun:test";
import { makeHeartbeat, type TestHeartbeat } from "../../../support/heartbeats.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let server: TestServer;
let account: AccountClient;
let beat: TestHeartbeat;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
  // From midnight on.
  await server.clock.advance(DAY_MS - (TEST_START_MS % DAY_MS));
  beat = await makeHeartbeat(server, account, { period_ms: HOUR_MS, grace_ms: HOUR_MS });
});
afterEach(() => server.stop());

type Uptime = Readonly<Record<"24h" | "7d" | "30d" | "90d", number | null>>;

const uptime = async (id = beat.id) =>
  (await account.get(`/v1/pulse/${id}/history`)).body["uptime"] as Uptime;

/** Pings every hour. */
async function pingFor(hours: number): Promise<void> {
  for (let hour = 0; hour < hours; hour += 1) {
    await beat.ping();
    await server.clock.advance(HOUR_MS);
  }
}

async function pageDays(): Promise<(number | null)[]> {
  const groups = [{ name: "", monitor_ids: [beat.id] }];
  await account.post("/v1/pulse/pages", { slug: "beats", title: "B", groups });
  await server.clock.advance(10_000);
  const { body } = await server.client(null).get("/status/beats.json");
  const [group] = body["groups"] as { monitors: { uptime_by_day: (number | null)[] }[] }[];
  return group?.monitors[0]?.uptime_by_day.slice(-5) ?? [];
}

test("an outage of days is counted on its days, while it lasts and after it", async () => {
  await pingFor(24);
  // Down an hour later, since it was missed.
  await server.clock.advance(2 * DAY_MS + 12 * HOUR_MS);
  expect(await uptime()).toEqual({
    "24h": 0,
    "7d": expect.closeTo((25 / 84) * 100, 1),
    "30d": expect.closeTo((25 / 84) * 100, 1),
    "90d": expect.closeTo((25 / 84) * 100, 1),
  });
  const days = [null, 100, expect.closeTo(100 / 24, 1), 0, 0];
  expect(await pageDays()).toEqual(days);
  await beat.ping();
  await server.clock.advance(HOUR_MS - 20_000);
  expect(await uptime()).toMatchObject({
    "24h": expect.closeTo(100 / 24, 0),
    "7d": expect.closeTo((26 / 85) * 100, 1),
  });
  expect(await pageDays()).toEqual([null, 100, expect.closeTo(100 / 24, 1), 0, expect.closeTo(100 / 13, 1)]);
});

test("the time until a pause counts, that of the pause does not, and after it the status stands again", async () => {
  await pingFor(10);
  await server.clock.advance(5 * HOUR_MS);
  const before = await uptime();
  expect(before["24h"]).toBeCloseTo((11 / 15) * 100, 1);
  expect((await account.put(`/v1/pulse/${beat.id}`, { active: false })).status).toBe(200);
  expect(await uptime()).toEqual(before);
  await server.clock.advance(5 * HOUR_MS);
  expect(await uptime()).toEqual(before);
  expect((await account.put(`/v1/pulse/${beat.id}`, { active: true })).status).toBe(200);
  await server.clock.advance(3 * HOUR_MS);
  expect((await uptime())["24h"]).toBeCloseTo((11 / 18) * 100, 1);
});

test("a maintenance window in the middle of an outage is no downtime, and the rest of the outage is", async () => {
  await pingFor(10);
  await server.clock.advance(2 * HOUR_MS);
  const at = (hours: number) => new Date(server.clock.now() + hours * HOUR_MS).toISOString();
  const window = { title: "W", monitor_ids: [beat.id], starts_at: at(1), ends_at: at(5) };
  expect((await account.post("/v1/pulse/maintenance", window)).status).toBe(201);
  await server.clock.advance(8 * HOUR_MS);
  // Up for 11 hours, down for one before the window and three after it.
  expect((await uptime())["24h"]).toBeCloseTo((11 / 16) * 100, 1);
  await beat.ping();
  expect((await uptime())["24h"]).toBeCloseTo((11 / 16) * 100, 1);
});

test("another interval changes nothing about the time before", async () => {
  const { body } = await account.post("/v1/pulse", { url: "https://a.invalid/", interval: "1d" });
  const id = String(body["id"]);
  await server.clock.advance(60_000);
  await server.clock.advance(12 * HOUR_MS);
  const before = await uptime(id);
  expect((await account.put(`/v1/pulse/${id}`, { interval: "1m", active: false })).status).toBe(200);
  expect(await uptime(id)).toEqual(before);
});
