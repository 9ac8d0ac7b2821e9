import { afterAll, beforeAll, expect, test } from "bun:test";
import { getServers, setServers } from "node:dns";
import { createSystemResolver } from "../../../src/kernel/outbound/lookups.ts";
import { until } from "../../support/eventually.ts";
import { NameServer } from "../../support/name-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

/** Number of one account's names whose lookups hang, for monitors and for deliveries each. */
const HANGING = 20;
/** Longest timeout of a monitor: what waits for these lookups waits for as long. */
const HANGING_MS = 30_000;

const before = getServers();
let names: NameServer;
let server: TestServer;
let sink: WebhookSink;
beforeAll(async () => {
  names = await new NameServer().start();
  names.names.set("well.example", ["127.0.0.1"]);
  setServers([names.address]);
  sink = new WebhookSink();
  server = await startTestServer({
    args: ["--allow-private-targets", "127.0.0.0/8"],
    deps: { outbound: { resolver: createSystemResolver() } },
  });
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
  const terms = { url, interval: HANGING_MS, timeout: HANGING_MS };
  const { status, body } = await account.post("/v1/pulse", terms);
  expect(status).toBe(201);
  return String(body["id"]);
}

async function deliver(account: AccountClient, host: string): Promise<void> {
  const { status } = await account.post("/v1/relay", {
    target_url: `http://${host}:${sink.port}/hook`,
    method: "POST",
    delay: "1s",
    payload: {},
    headers: {},
  });
  expect(status).toBe(201);
}

test("hanging names of one account delay no delivery and fail no monitor of another", async () => {
  const hostile = await server.account();
  const other = await server.account();
  const hanging = Array.from({ length: HANGING }, (_, at) => `hang-${at}.example`);
  let ended = 0;
  const begin = async (host: string): Promise<void> => {
    const id = await monitor(hostile, host);
    await deliver(hostile, host);
    await hostile.post(`/v1/pulse/${id}/check`);
    ended += 1;
  };
  for (const host of hanging) void begin(host);
  await until(() => hanging.every((host) => names.asked.includes(host)));

  const well = await monitor(other, "well.example");
  const check = await other.post(`/v1/pulse/${well}/check`);
  expect(check.body).toMatchObject({ status: "up" });
  await deliver(other, "well.example");
  await until(() => sink.received.some(({ path }) => path === "/hook"));
  expect(ended).toBe(0);
  expect((await other.get(`/v1/pulse/${well}`)).body).toMatchObject({
    status: "up",
    consecutive_failures: 0,
  });
}, 60_000);
