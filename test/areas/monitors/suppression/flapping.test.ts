import { afterEach, beforeEach, expect, test } from "bun:test";
import { AllEvents } from "../../../support/all-events.ts";
import { AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
let hooks: WebhookSink;
let channel: AllEvents;
let id: string;
beforeEach(async () => {
  [site, hooks, channel] = [new WebhookSink(), new WebhookSink(), new AllEvents()];
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  await channel.open(account);
  const settings = { url: site.url(), interval: 15_000, name: "Shop", cooldown_ms: 3_600_000 };
  const alerts = { webhook_url: hooks.url(), notify_recovery: true };
  id = String((await account.post("/v1/pulse", { ...settings, ...alerts })).body["id"]);
  await server.clock.advance(MINUTE);
});
afterEach(async () => {
  await server.stop();
  for (const item of [site, hooks, channel]) item.stop();
});

const flaps = async () => (await account.get(`/v1/pulse/${id}`)).body["flapping"];

/** Alternates between down and up, each for this number of minutes. */
async function change(times: number, everyMinutes: number): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    isUp = !isUp;
    site.answers(isUp ? 200 : 500);
    await server.clock.advance(everyMinutes * MINUTE);
  }
}
let isUp = true;
beforeEach(() => {
  isUp = true;
});

const [DOWN, UP, FLAPPING] = ["Shop monitor.down", "Shop monitor.up", "Shop monitor.flapping"];

test("the fifth change in 30 minutes is reported as flapping; no further alerts until 15 minutes without a change", async () => {
  await change(4, 5);
  expect(channel.take()).toEqual([DOWN, UP, DOWN, UP]);
  expect(await flaps()).toBe(false);
  await change(1, 5);
  expect(channel.take()).toEqual([FLAPPING]);
  expect(await flaps()).toBe(true);
  await change(6, 10);
  expect(channel.take()).toEqual([]);
  await server.clock.advance(4 * MINUTE);
  expect([channel.take(), await flaps()]).toEqual([[], true]);
  await server.clock.advance(2 * MINUTE);
  const [settled, ...others] = channel.takeBodies();
  expect(others).toEqual([]);
  const { incident_id } = (await account.get(`/v1/pulse/${id}`)).body;
  expect(settled).toMatchObject({ event: "monitor.down", name: "Shop", incident_id, status: "down" });
  expect(await flaps()).toBe(false);
  // The detection starts again.
  await change(1, 5);
  expect(channel.take()).toEqual([UP]);
  // The monitor's own webhook received every change, as without flapping.
  const events = hooks.take().map(({ body }) => JSON.parse(body).event);
  const changes = events.filter((event, index) => event !== events[index - 1]);
  expect(changes.length).toBe(12);
});

test("ends with an alert of the stable status, also if it is up", async () => {
  await change(6, 3);
  expect(channel.take()).toEqual([DOWN, UP, DOWN, UP, FLAPPING]);
  await server.clock.advance(20 * MINUTE);
  expect(channel.take()).toEqual([UP]);
});

test("five changes over more than 30 minutes are not flapping", async () => {
  await change(12, 8);
  expect(channel.take()).toEqual([DOWN, UP, DOWN, UP, DOWN, UP, DOWN, UP, DOWN, UP, DOWN, UP]);
});

test("changes found by manual checks do not count", async () => {
  for (let count = 0; count < 6; count += 1) {
    site.answers(count % 2 === 0 ? 500 : 200);
    await account.post(`/v1/pulse/${id}/check`);
  }
  await server.clock.advance(MINUTE);
  expect([channel.take(), await flaps()]).toEqual([[], false]);
});

test("survives a restart, and waits for the end of maintenance", async () => {
  await change(5, 3);
  expect(channel.take().at(-1)).toBe(FLAPPING);
  await server.restart();
  account = new AccountClient(server.url, account.key ?? "", account.userId, account.email);
  expect(await flaps()).toBe(true);
  await change(1, 3);
  expect(channel.take()).toEqual([]);
  const now = server.clock.now();
  const times = {
    starts_at: new Date(now).toISOString(),
    ends_at: new Date(now + 60 * MINUTE).toISOString(),
  };
  await account.post("/v1/pulse/maintenance", { title: "Move", ...times, monitor_ids: [id] });
  await server.clock.advance(50 * MINUTE);
  expect(channel.take()).toEqual(["Move maintenance.started"]);
  await server.clock.advance(12 * MINUTE);
  expect(channel.take().sort()).toEqual(["Move maintenance.ended", UP]);
  expect(await flaps()).toBe(false);
});

test("is deleted with the monitor", async () => {
  await change(5, 3);
  channel.take();
  await account.delete(`/v1/pulse/${id}`);
  await server.clock.advance(60 * MINUTE);
  expect(channel.take()).toEqual([]);
  const { db } = server.server.kernel;
  expect(db.one("SELECT count(*) AS rows FROM monitor_quiet")()).toEqual({ rows: 0 });
});
