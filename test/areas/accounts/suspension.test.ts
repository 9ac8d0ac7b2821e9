import { afterEach, beforeEach, expect, test } from "bun:test";
import { SUSPENDED_MS } from "../../../src/kernel/scheduler/scheduler.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let site: WebhookSink;
let sink: WebhookSink;
let server: TestServer;
let account: AccountClient;
beforeEach(async () => {
  [site, sink] = [new WebhookSink(), new WebhookSink()];
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account({ tier: "pro" });
});
afterEach(async () => {
  await server.stop();
  site.stop();
  sink.stop();
});

async function suspend(suspended: boolean): Promise<void> {
  const { status } = await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended });
  expect(status).toBe(200);
}

async function made(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await account.post(path, body);
  expect(response.status, response.text).toBeLessThan(300);
  return response.body;
}

test("checks and deliveries of a suspended account stop, also over a restart, and go on with its return", async () => {
  await made("/v1/pulse", { url: site.url("/health"), interval: 30_000 });
  await made("/v1/relay", { method: "POST", target_url: sink.url("/later"), payload: {}, delay: "10m" });
  await server.clock.advance(MINUTE);
  expect(site.take().length).toBeGreaterThan(0);
  await suspend(true);
  await server.clock.advance(HOUR);
  await server.restart();
  await server.clock.advance(HOUR);
  expect([site.take(), sink.take()]).toEqual([[], []]);
  await suspend(false);
  await server.clock.advance(SUSPENDED_MS + MINUTE);
  expect(site.take().length).toBeGreaterThan(0);
  expect(sink.take().map(({ path }) => path)).toEqual(["/later"]);
});

test("pings of a suspended account are rejected, nobody is notified, and its heartbeats begin as new", async () => {
  const terms = { type: "heartbeat", name: "Backup", period_ms: 10 * MINUTE, grace_ms: 5 * MINUTE };
  await made("/v1/pulse/channels", { name: "Hook", kind: "webhook", config: { url: sink.url("/hook") } });
  const [up, down] = [await made("/v1/pulse", terms), await made("/v1/pulse", { ...terms, name: "Other" })];
  const ping = async (one: Record<string, unknown>, more = "") =>
    (await fetch(server.url + new URL(String(one["ping_url"])).pathname + more)).status;
  expect([await ping(up), await ping(down, "/fail")]).toEqual([200, 200]);
  await server.clock.advance(MINUTE);
  expect(sink.take().length).toBe(1);
  await suspend(true);
  expect(await ping(up)).toBe(404);
  await server.clock.advance(24 * HOUR);
  await suspend(false);
  await server.clock.advance(24 * HOUR);
  expect(sink.take()).toEqual([]);
  for (const one of [up, down]) {
    const { body } = await account.get(`/v1/pulse/${one["id"]}`);
    expect(body).toMatchObject({ status: "unknown", expected_at: null, consecutive_failures: 0 });
  }
  const { body } = await account.get("/v1/pulse/incidents?status=open");
  expect(body["incidents"]).toEqual([]);
  expect(await ping(up)).toBe(200);
  await server.clock.advance(15 * MINUTE);
  expect(sink.take().map(({ body: text }) => JSON.parse(text).event)).toEqual(["monitor.down"]);
});
