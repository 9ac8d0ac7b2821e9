import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";
import { accepted, LOOPBACK_ALLOWED, newBucket, setState } from "../catch/support.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** Longer than all attempts of an event, and of a delivery. */
const TRIES_MS = 60_000;

let server: TestServer;
let sink: WebhookSink;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  sink = new WebhookSink();
});
afterAll(async () => {
  await server.stop();
  sink.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "pro" });
  sink.answersBy(() => 500);
});

const isoNow = (): string => new Date(server.clock.now()).toISOString();

async function cardOf(area: string): Promise<unknown> {
  return (await account.get("/v1/overview")).body[area];
}

/** Waits until a card has these values: the events that cause them have already been triggered. */
async function becomes(area: string, wanted: object): Promise<void> {
  await eventually(async () => expect(await cardOf(area)).toMatchObject(wanted));
}

describe("pending and failed events", () => {
  test("pending_since is the time of the oldest pending event, except in paused buckets", async () => {
    const { id } = await newBucket(account, { target_url: sink.url() });
    const since = isoNow();
    await accepted(server, id);
    await server.clock.advance(2_000);
    await accepted(server, id);
    expect(await cardOf("catch")).toMatchObject({ pending: 2, pending_since: null });
    await setState(account, id, "live");
    await becomes("catch", { pending: 2, pending_since: since });
    await setState(account, id, "paused");
    expect(await cardOf("catch")).toMatchObject({ pending_since: null });
    sink.answersBy(() => 200);
    await setState(account, id, "live");
    await server.clock.advance(TRIES_MS);
    await becomes("catch", { pending: 0, delivered: 2, failed: 0, failed_24h: 0, pending_since: null });
  });

  test("failed_24h counts the failed events of the last day, of all buckets", async () => {
    const plain = await newBucket(account, { target_url: sink.url() });
    const signed = await newBucket(account, {
      target_url: sink.url(),
      provider: "github",
      signing_secret: "a secret of some length",
    });
    for (const { id } of [plain, signed]) await setState(account, id, "live");
    await accepted(server, plain.id);
    await accepted(server, signed.id);
    await server.clock.advance(TRIES_MS);
    await becomes("catch", { failed: 2, failed_24h: 2, pending_since: null });
    await server.clock.advance(DAY_MS - TRIES_MS);
    expect(await cardOf("catch")).toMatchObject({ failed: 2, failed_24h: 2 });
    await server.clock.advance(1);
    expect(await cardOf("catch")).toMatchObject({ failed: 2, failed_24h: 0 });
  });
});

describe("deliveries", () => {
  test("retrying_since is the earliest due time of those that are retried, without failed ones", async () => {
    const delivery = { target_url: sink.url(), method: "POST", payload: {} };
    await account.post("/v1/relay", { ...delivery, delay: "1h" });
    await account.post("/v1/relay", { ...delivery, delay: "20s", retry_schedule: ["1h"] });
    const due = new Date(server.clock.now() + 10_000).toISOString();
    await account.post("/v1/relay", { ...delivery, delay: "10s", retry_schedule: ["1h"] });
    expect(await cardOf("relay")).toMatchObject({ scheduled: 3, retrying_since: null });
    await server.clock.advance(30_000);
    await becomes("relay", { scheduled: 1, failed: 0, retrying_since: due });
    await server.clock.advance(2 * HOUR_MS);
    await becomes("relay", { scheduled: 0, failed: 3, retrying_since: null });
  });
});

describe("receipts", () => {
  test("buffered_since is the time of the oldest receipt without a copy in the storage", async () => {
    const config = { endpoint: sink.url(), bucket: "receipts", region: "us-east-1" };
    await account.post("/v1/witness/sys/init");
    await account.post("/v1/witness/log", { log: { n: 1 } });
    const keys = {
      accessKeyId: "AKIATESTTESTTESTTEST",
      secretAccessKey: "a-secret-of-some-length",
    };
    const configured = await account.post("/v1/witness/config", { ...config, ...keys });
    expect(configured.status, configured.text).toBe(200);
    expect(await cardOf("witness")).toEqual({ receipts: 1, buffered: 0, buffered_since: null });
    await server.clock.advance(1_000);
    const since = isoNow();
    await account.post("/v1/witness/log", { log: { n: 2 } });
    await server.clock.advance(1_000);
    await account.post("/v1/witness/log", { log: { n: 3 } });
    expect(await cardOf("witness")).toEqual({ receipts: 3, buffered: 2, buffered_since: since });
    sink.answersBy(() => 200);
    await server.clock.advance(HOUR_MS);
    await becomes("witness", { buffered: 0, buffered_since: null });
  });
});
