import { afterAll, beforeAll, expect, test } from "bun:test";
import { getServers, setServers } from "node:dns";
import { until } from "../../support/eventually.ts";
import { NameServer } from "../../support/name-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

/** Number of one account's names whose lookups hang, for monitors and for deliveries each. */
const HANGING = 20;
/** Maximum lateness of another account's delivery. */
const LATE_MS_MAX = 1_000;

const before = getServers();
let names: NameServer;
let server: TestServer;
let sink: WebhookSink;
beforeAll(async () => {
  names = await new NameServer().start();
  names.names.set("well.example", ["127.0.0.1"]);
  setServers([names.address]);
  sink = new WebhookSink();
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  // When it stops, it ends lookups that are still in progress: the stop waits for attempts in flight.
  names.stop();
  await server.stop();
  sink.stop();
  setServers(before);
}, 60_000);

async function monitor(account: AccountClient, host: string): Promise<string> {
  const url = `http://${host}:${sink.port}/health`;
  const { status, body } = await account.post("/v1/pulse", { url, interval: 15_000, timeout: 3_000 });
  expect(status).toBe(201);
  return String(body["id"]);
}

async function deliver(account: AccountClient, host: string): Promise<number> {
  const { status, body } = await account.post("/v1/relay", {
    target_url: `http://${host}:${sink.port}/hook`,
    method: "POST",
    delay: "1s",
    payload: {},
    headers: {},
  });
  expect(status).toBe(201);
  return Number(body["scheduled_for"]);
}

test("hanging names of one account delay no delivery and fail no monitor of another", async () => {
  const hostile = await server.account();
  const other = await server.account();
  const hanging = Array.from({ length: HANGING }, (_, at) => `hang-${at}.example`);
  const checks = hanging.map(async (host) => {
    const id = await monitor(hostile, host);
    await deliver(hostile, host);
    return (await hostile.post(`/v1/pulse/${id}/check`)).body["status"];
  });
  await until(() => hanging.every((host) => names.asked.includes(host)));

  const well = await monitor(other, "well.example");
  const check = await other.post(`/v1/pulse/${well}/check`);
  expect(check.body).toMatchObject({ status: "up" });
  const dueAt = await deliver(other, "well.example");
  while (!sink.received.some(({ path }) => path === "/hook")) await Bun.sleep(10);
  expect(Date.now() - dueAt).toBeLessThan(LATE_MS_MAX);
  expect((await other.get(`/v1/pulse/${well}`)).body).toMatchObject({
    status: "up",
    consecutive_failures: 0,
  });
  expect(new Set(await Promise.all(checks))).toEqual(new Set(["down"]));
}, 60_000);
