import { afterEach, beforeEach, expect, test } from "bun:test";
import { isoTime } from "../../../../src/kernel/time/date-time.ts";
import { AllEvents } from "../../../support/all-events.ts";
import { Line } from "../../../support/line.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let line: Line;
let probe: WebhookSink;
let server: TestServer;
let account: AccountClient;
let channel: AllEvents;
let id: string;
let pingUrl: string;
beforeEach(async () => {
  [line, probe, channel] = [new Line(), new WebhookSink(), new AllEvents()];
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8", "--observer-targets", `probe.example:${probe.port}`],
    deps: { outbound: line.overrides },
  });
  account = await server.account();
  await channel.open(account);
  const terms = { type: "heartbeat", name: "Backup", period_ms: 10 * MINUTE, grace_ms: 5 * MINUTE };
  const { body } = await account.post("/v1/pulse", terms);
  id = String(body["id"]);
  pingUrl = String(body["ping_url"]);
  await ping();
});
afterEach(async () => {
  await server.stop();
  probe.stop();
  channel.stop();
});

async function ping(): Promise<void> {
  const { pathname } = new URL(pingUrl);
  expect((await fetch(server.url + pathname)).status).toBe(200);
}

const status = async () => (await account.get(`/v1/pulse/${id}`)).body["status"];

async function plan(from: number, to: number): Promise<string> {
  const times = { starts_at: isoTime(from), ends_at: isoTime(to) };
  const { body } = await account.post("/v1/pulse/maintenance", {
    title: "Move",
    ...times,
    monitor_ids: [id],
  });
  return String(body["id"]);
}

test("a deadline within a maintenance window is reported at its end", async () => {
  const now = server.clock.now();
  await plan(now + 12 * MINUTE, now + HOUR);
  await server.clock.advance(59 * MINUTE);
  expect([await status(), channel.take()]).toEqual(["up", ["Move maintenance.started"]]);
  await server.clock.advance(MINUTE);
  expect([await status(), channel.take().sort()]).toEqual([
    "down",
    ["Backup monitor.down", "Move maintenance.ended"],
  ]);
});

test("a ping during maintenance is recorded; deleting the window ends it immediately", async () => {
  const now = server.clock.now();
  const work = await plan(now, now + 10 * HOUR);
  await server.clock.advance(50 * MINUTE);
  await ping();
  await server.clock.advance(14 * MINUTE);
  expect(await status()).toBe("up");
  await server.clock.advance(20 * MINUTE);
  expect([await status(), channel.take()]).toEqual(["up", ["Move maintenance.started"]]);
  await account.delete(`/v1/pulse/maintenance/${work}`);
  await server.clock.advance(1_000);
  expect([await status(), channel.take().sort()]).toEqual([
    "down",
    ["Backup monitor.down", "Move maintenance.ended"],
  ]);
});

test("deadlines are postponed while the server is offline, and start again when it is back", async () => {
  line.isUp = false;
  await server.clock.advance(2 * HOUR);
  expect([await status(), channel.take()]).toEqual(["up", []]);
  line.isUp = true;
  await server.clock.advance(MINUTE);
  expect([await status(), channel.take()]).toEqual(["up", ["The monitoring server observer.offline"]]);
  await server.clock.advance(3 * MINUTE);
  expect(await status()).toBe("up");
  await server.clock.advance(2 * MINUTE);
  expect([await status(), channel.take()]).toEqual(["down", ["Backup monitor.down"]]);
});

test("while the server is online, a missing ping is reported in time", async () => {
  await server.clock.advance(15 * MINUTE - 1);
  expect(await status()).toBe("up");
  await server.clock.advance(1);
  expect([await status(), channel.take()]).toEqual(["down", ["Backup monitor.down"]]);
  expect(probe.received.length).toBe(0);
});

test("monitors that depend on a missing heartbeat do not alert", async () => {
  await server.clock.advance(20 * MINUTE);
  expect(channel.take()[0]).toBe("Backup monitor.down");
  const site = new WebhookSink();
  const settings = { url: site.url(), interval: 15_000, name: "Shop", depends_on: id };
  const { body } = await account.post("/v1/pulse", settings);
  await server.clock.advance(MINUTE);
  site.answers(500);
  await server.clock.advance(MINUTE);
  expect((await account.get(`/v1/pulse/${body["id"]}`)).body["status"]).toBe("down");
  expect(channel.take().filter((notice) => notice.startsWith("Shop"))).toEqual([]);
  site.stop();
});
