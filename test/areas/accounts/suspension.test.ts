import { afterEach, beforeEach, expect, test } from "bun:test";
import { SUSPENDED_MS } from "../../../src/kernel/scheduler/scheduler.ts";
import { until } from "../../support/eventually.ts";
import { MailServer } from "../../support/mail-server.ts";
import { S3Server } from "../../support/s3-server.ts";
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

async function create(path: string, body: object): Promise<Record<string, unknown>> {
  const response = await account.post(path, body);
  expect(response.status, response.text).toBeLessThan(300);
  return response.body;
}

test("checks and deliveries of a suspended account stop, also after a restart, and continue on reactivation", async () => {
  await create("/v1/pulse", { url: site.url("/health"), interval: 30_000 });
  await create("/v1/relay", { method: "POST", target_url: sink.url("/later"), payload: {}, delay: "10m" });
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

test("pings of a suspended account are rejected, no channel is notified, and its heartbeats start as new", async () => {
  const terms = { type: "heartbeat", name: "Backup", period_ms: 10 * MINUTE, grace_ms: 5 * MINUTE };
  await create("/v1/pulse/channels", { name: "Hook", kind: "webhook", config: { url: sink.url("/hook") } });
  const [up, down] = [
    await create("/v1/pulse", terms),
    await create("/v1/pulse", { ...terms, name: "Other" }),
  ];
  const ping = async (one: Record<string, unknown>, more = "") =>
    (await fetch(server.url + new URL(String(one["ping_url"])).pathname + more)).status;
  expect([await ping(up), await ping(down, "/fail")]).toEqual([200, 200]);
  await server.clock.advance(MINUTE);
  expect(sink.take().length).toBe(1);
  await suspend(true);
  expect(await ping(up)).toBe(404);
  await server.clock.advance(24 * HOUR);
  await suspend(false);
  await server.clock.advance(14 * MINUTE);
  expect(sink.take()).toEqual([]);
  await server.clock.advance(24 * HOUR);
  expect(sink.take().map(({ body: text }) => JSON.parse(text).event)).toEqual([
    "monitor.overdue",
    "monitor.overdue",
  ]);
  for (const item of [up, down]) {
    const { body } = await account.get(`/v1/pulse/${item["id"]}`);
    expect(body).toMatchObject({ status: "unknown", overdue: true, consecutive_failures: 0 });
  }
  const { body } = await account.get("/v1/pulse/incidents?status=open");
  expect(body["incidents"]).toEqual([]);
  expect(await ping(up)).toBe(200);
  await server.clock.advance(15 * MINUTE);
  expect(sink.take().map(({ body: text }) => JSON.parse(text).event)).toEqual(["monitor.down"]);
});

test("probes of a suspended account get no work and report nothing, and come back without an alert", async () => {
  await create("/v1/pulse/channels", { name: "Hook", kind: "webhook", config: { url: sink.url("/hook") } });
  const { token } = await create("/v1/pulse/probes", { name: "home" });
  const terms = { url: "https://10.9.8.7/", interval: 30_000, timeout: 1_000, probes: ["home"] };
  const { id } = await create("/v1/pulse", terms);
  let probe = server.client(String(token));
  let results = 0;
  const send = async () => {
    results += 1;
    const result = { result_id: `r-${results}`, monitor_id: id, age_ms: 0, status: "up", latency_ms: 9 };
    return (await probe.post("/v1/probe/results", { results: [result] })).status;
  };
  const work = (after: unknown, waitMs: number) =>
    probe.get(`/v1/probe/work?wait_ms=${waitMs}&after=${after}`);
  const status = async () => (await account.get(`/v1/pulse/${id}`)).body["status"];
  const { cursor } = (await work("", 0)).body;
  expect([await send(), await status()]).toEqual([200, "up"]);
  const waiting = work(cursor, 55_000);
  await until(async () => (await account.get("/v1/pulse/probes")).text.includes('"online"'));
  await suspend(true);
  expect([(await waiting).status, (await work(cursor, 0)).status, await send()]).toEqual([403, 403, 403]);
  await server.clock.advance(HOUR);
  await server.restart();
  account = Object.assign(account, { url: server.url });
  probe = server.client(String(token));
  expect((await work(cursor, 0)).status).toBe(403);
  await server.clock.advance(HOUR);
  await suspend(false);
  // It tries again after a while.
  await server.clock.advance(20_000);
  expect((await work(cursor, 0)).body["monitors"]).toMatchObject([{ monitor_id: id }]);
  await server.clock.advance(10_000);
  expect(await send()).toBe(200);
  await server.clock.advance(MINUTE);
  expect([await send(), await status()]).toEqual([200, "up"]);
  expect(sink.take()).toEqual([]);
  // Those that stay away are reported.
  await server.clock.advance(5 * MINUTE);
  const events = sink.take().map(({ body: text }) => JSON.parse(text).event);
  expect(events.toSorted()).toEqual(["monitor.unknown", "probe.offline"]);
});

test("refills of a suspended account are skipped, those before and after are made", async () => {
  const balance = async () => (await account.get("/v1/meter/m/balance")).body["balance"];
  const plan = await account.put("/v1/meter/m/plan", { amount: 100, every: "day", mode: "add" });
  expect(plan.status, plan.text).toBe(200);
  const untilMidnight = 24 * HOUR - (server.clock.now() % (24 * HOUR));
  await server.clock.advance(untilMidnight + HOUR);
  expect(await balance()).toBe(100);
  await suspend(true);
  await server.clock.advance(48 * HOUR);
  await suspend(false);
  expect(await balance()).toBe(100);
  await server.clock.advance(24 * HOUR);
  expect(await balance()).toBe(200);
});

test("buffered receipts of a suspended account are uploaded after its reactivation", async () => {
  const storage = await new S3Server().start();
  try {
    await create("/v1/witness/sys/init", {});
    await create("/v1/witness/config", storage.config());
    storage.mode = "down";
    await create("/v1/witness/log", { log: { n: 1 } });
    storage.mode = "up";
    await suspend(true);
    const requests = storage.requests.length;
    await server.clock.advance(24 * HOUR);
    expect(storage.requests).toHaveLength(requests);
    await suspend(false);
    await server.clock.advance(SUSPENDED_MS + MINUTE);
    expect(storage.requests).toHaveLength(requests + 1);
    expect((await account.get("/v1/witness/config")).body["buffered"]).toBe(0);
  } finally {
    await storage.stop();
  }
});

test("the published log and the public key of a suspended account are not shown until its reactivation", async () => {
  const { chain_id } = await create("/v1/witness/sys/init", {});
  await create("/v1/witness/log", { log: { n: 1 } });
  expect((await account.put("/v1/witness/tlog", { public: true })).status).toBe(200);
  expect((await account.get("/v1/witness/checkpoint")).status).toBe(200);
  const log = `/v1/witness/tlog/${chain_id}`;
  const paths = [`${log}/checkpoint`, `${log}/tile/0/000.p/1`, `${log}/tile/entries/000.p/1`];
  const statuses = () =>
    Promise.all(
      [...paths, `/v1/witness/pubkey/${chain_id}`].map(
        async (path) => (await server.client(null).get(path)).status,
      ),
    );
  expect(await statuses()).toEqual([200, 200, 200, 200]);
  await suspend(true);
  expect(await statuses()).toEqual([404, 404, 404, 404]);
  await suspend(false);
  expect(await statuses()).toEqual([200, 200, 200, 200]);
});

test("queued e-mails of a suspended account are sent after its reactivation", async () => {
  const mail = await new MailServer().start();
  const sender = await startTestServer({
    manualClock: true,
    args: ["--signup", "open", "--mail-from", "keys@ninefold.example"],
    environment: { NINEFOLD_SMTP_URL: mail.url },
  });
  try {
    mail.refuseWith = 451;
    const signup = await sender.client(null).post("/v1/signup", { email: "ada@example.com", tier: "pro" });
    expect(signup.status, signup.text).toBe(201);
    await sender.clock.advance(0);
    const path = `/v1/admin/accounts/${signup.body["user_id"]}`;
    expect((await sender.operator.patch(path, { suspended: true })).status).toBe(200);
    mail.refuseWith = null;
    await sender.clock.advance(24 * HOUR);
    expect(mail.received).toEqual([]);
    await sender.operator.patch(path, { suspended: false });
    await sender.clock.advance(SUSPENDED_MS + MINUTE);
    expect(mail.received.map(({ to }) => to)).toEqual([["ada@example.com"]]);
  } finally {
    await sender.stop();
    await mail.stop();
  }
});

test("status pages of a suspended account return 404", async () => {
  const monitor = await create("/v1/pulse", { url: site.url("/"), interval: 60_000 });
  const groups = [{ name: "", monitor_ids: [monitor["id"]] }];
  await create("/v1/pulse/pages", { slug: "shop", title: "Shop", groups });
  const { id } = await create("/v1/pulse/incidents", { title: "Disk full", public: true });
  const visitor = server.client(null);
  const paths = [
    "shop",
    "shop.json",
    "shop/feed.atom",
    "shop/badge/1.svg",
    "shop/badge.svg",
    "shop/groups/1.json",
    `shop/incidents/${id}.json`,
  ];
  const statuses = async () =>
    await Promise.all(paths.map(async (path) => (await visitor.get(`/status/${path}`)).status));
  await server.clock.advance(MINUTE);
  const before = await statuses();
  expect(before).toEqual(paths.map(() => 200));
  await suspend(true);
  expect(await statuses()).toEqual(paths.map(() => 404));
  await suspend(false);
  expect(await statuses()).toEqual(before);
});
