import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { accepted, ingest, newBucket, setState } from "../../areas/catch/support.ts";
import { EventReader } from "../../support/event-reader.ts";
import { type Scrape, scrape } from "../../support/metrics.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";
import { storageFailure } from "../support.ts";

let server: TestServer;
let account: AccountClient;
let sink: WebhookSink;
beforeEach(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account({ balance: 1_000 });
});
afterEach(async () => {
  await server.stop();
  sink.stop();
});

/** A direct request without a key, as Prometheus on this machine sends it. */
const look = (): Promise<Scrape> => scrape(server.client(null));

describe("requests", () => {
  test("are counted by operation and status, and timed by operation", async () => {
    for (let n = 0; n < 3; n += 1) await account.post("/v1/meter/m/refill", { amount: 1 });
    await account.post("/v1/meter/m/refill", { amount: 0 });
    await account.post("/v1/meter/m/deduct", { amount: 9 });
    await server.client(null).post("/v1/meter/m/refill", { amount: 1 });
    await account.send("HEAD", "/v1/meter/m/balance");
    await account.get("/v1/meter/m/balance");
    await account.get("/v1/nowhere");
    await server.client(null).get("/v1/nowhere");
    const seen = await look();
    expect(seen.counts("ninefold_http_requests_total")).toEqual({
      "admin.accounts.create 201": 1,
      "meter.refill 200": 3,
      "meter.refill 400": 1,
      "meter.refill 401": 1,
      "meter.deduct 402": 1,
      "meter.balance 200": 2,
      "none 404": 1,
      "none 401": 1,
    });
    const timed = (operation: string) =>
      seen.find("ninefold_http_request_duration_seconds_count", { operation });
    expect([timed("meter.refill"), timed("meter.balance"), timed("none")]).toEqual([5, 2, 2]);
    expect(timed("gate.list")).toBeNull();
    expect(seen.value("ninefold_http_requests_total", { operation: "gate.list", status: "503" })).toBe(0);
    // The scrape counts itself after its response.
    expect((await look()).counts("ninefold_http_requests_total")["metrics.read 200"]).toBe(1);
  });

  test("that wait are in flight, and measured until they end", async () => {
    await account.post("/v1/latch/door/acquire", { ttl: 60_000 });
    const waiting = account.post("/v1/latch/door/acquire", { ttl: 60_000, wait: true, timeout: 5_000 });
    await server.client(null).get("/v1/ping");
    while ((await look()).value("ninefold_http_requests_in_flight") !== 2) await Bun.sleep(1);
    await Bun.sleep(60);
    await server.clock.advance(5_000);
    expect((await waiting).status).toBe(408);
    const seen = await look();
    expect(seen.value("ninefold_http_requests_in_flight")).toBe(1);
    const timed = (le: string) =>
      seen.value("ninefold_http_request_duration_seconds_bucket", { operation: "latch.acquire", le });
    expect(timed("60")).toBe(2);
    expect(
      seen.value("ninefold_http_request_duration_seconds_sum", { operation: "latch.acquire" }),
    ).toBeGreaterThan(0.06);
  });
});

test("open streams of each kind", async () => {
  const headers = { authorization: `Bearer ${account.key}` };
  const bulk = await account.post("/ofrep/v1/evaluate/flags", {});
  const [stream] = bulk.body["eventStreams"] as { endpoint: { requestUri: string } }[];
  const names = ["ninefold_change_streams", "ninefold_flag_streams"];
  const open = async () => {
    const seen = await look();
    return names.map((name) => seen.value(name));
  };
  expect(await open()).toEqual([0, 0]);
  const changes = await new EventReader().read(`${server.url}/v1/changes`, headers);
  const flags = await new EventReader().read(server.url + stream?.endpoint.requestUri);
  expect(await open()).toEqual([1, 1]);
  changes.close();
  flags.close();
  while ((await open()).some((count) => count !== 0)) await Bun.sleep(1);
});

describe("commits", () => {
  test("with their sizes and times", async () => {
    const { writer } = server.server.kernel;
    const before = await look();
    await writer.submit(() => 1);
    await Promise.all([writer.submit(() => 1), writer.submit(() => 2), writer.submit(() => 3)]);
    const after = await look();
    const grown = (name: string, labels = {}) => after.value(name, labels) - before.value(name, labels);
    expect(grown("ninefold_commits_total")).toBe(2);
    expect(grown("ninefold_commit_units_count")).toBe(2);
    expect(grown("ninefold_commit_units_sum")).toBe(4);
    expect(grown("ninefold_commit_units_bucket", { le: "2" })).toBe(1);
    expect(grown("ninefold_commit_units_bucket", { le: "5" })).toBe(2);
    expect(grown("ninefold_commit_duration_seconds_count")).toBe(2);
    expect(after.value("ninefold_commit_duration_seconds_sum")).toBeGreaterThan(0);
    expect(after.value("ninefold_commit_failures_total")).toBe(0);
    expect(after.value("ninefold_commit_failing")).toBe(0);
  });

  test("that fail", async () => {
    const { writer } = server.server.kernel;
    await expect(
      writer.submit(() => {
        throw storageFailure();
      }),
    ).rejects.toThrow("The database cannot be written now.");
    const failing = await look();
    expect(failing.value("ninefold_commit_failures_total")).toBe(1);
    expect(failing.value("ninefold_commit_failing")).toBe(1);
    await writer.submit(() => 1);
    expect((await look()).value("ninefold_commit_failing")).toBe(0);
  });

  test("pending units, the log and the file", async () => {
    const { writer, checkpointer, db, metrics } = server.server.kernel;
    const read = (name: string) =>
      [...(metrics.families.find((family) => family.name === name)?.samples() ?? [])].map(
        ({ value }) => value,
      );
    const done = [writer.submit(() => 1), writer.submit(() => 1)];
    expect(read("ninefold_writer_queue_units")).toEqual([2]);
    await Promise.all(done);
    expect(read("ninefold_writer_queue_units")).toEqual([0]);
    await account.post("/v1/meter/m/refill", { amount: 1 });
    const seen = await look();
    expect(seen.value("ninefold_wal_bytes")).toBeGreaterThan(4_096);
    expect(seen.value("ninefold_wal_bytes")).toBe(checkpointer.walBytes);
    expect(seen.value("ninefold_database_bytes")).toBe(Bun.file(db.path).size);
  });
});

describe("jobs", () => {
  const relay = { method: "POST", delay: "10s", payload: {}, headers: {} };
  const kind = "relay.deliver";

  test("waiting, due and running jobs, and their outcomes", async () => {
    for (let n = 0; n < 3; n += 1) await account.post("/v1/relay", { ...relay, target_url: sink.url() });
    const gauges = (seen: Scrape) =>
      ["waiting", "due", "running"].map((state) => seen.value(`ninefold_jobs_${state}`, { kind }));
    expect(gauges(await look())).toEqual([3, 0, 0]);
    const open: (() => void)[] = [];
    sink.answersBy(() => new Promise((resolve) => open.push(() => resolve(new Response()))));
    const advanced = server.clock.advance(10_000);
    while (open.length < 3) await Bun.sleep(1);
    expect(gauges(await look())).toEqual([0, 0, 3]);
    for (const answer of open) answer();
    await advanced;
    const seen = await look();
    expect(gauges(seen)).toEqual([0, 0, 0]);
    expect(seen.counts("ninefold_job_runs_total")).toEqual({ [`${kind} done`]: 3 });
    expect(seen.value("ninefold_job_lateness_seconds_count", { kind })).toBe(3);
    expect(seen.value("ninefold_job_lateness_seconds_bucket", { kind, le: "0.01" })).toBe(3);
  });

  test("counts after cancellations, replacements, rollbacks and restarts", async () => {
    const { scheduler, writer, clock } = server.server.kernel;
    const waiting = async () =>
      Object.entries((await look()).counts("ninefold_jobs_waiting")).filter(([name]) => /^test\./.test(name));
    const at = clock.now() + 3_600_000;
    await writer.submit((tx) => {
      scheduler.enqueue(tx, "test.keyed", "a", at, null);
      scheduler.enqueue(tx, "test.keyed", "b", at, null);
      scheduler.enqueueAnonymous(tx, "test.plain", at, null);
    });
    expect(await waiting()).toEqual([
      ["test.keyed", 2],
      ["test.plain", 1],
    ]);
    await writer.submit((tx) => scheduler.enqueue(tx, "test.keyed", "a", at + 1, null));
    await writer.submit((tx) => scheduler.cancel(tx, "test.keyed", "nobody"));
    const undone = writer.submit((tx) => {
      scheduler.enqueue(tx, "test.keyed", "c", at, null);
      scheduler.cancel(tx, "test.keyed", "b");
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await waiting()).toEqual([
      ["test.keyed", 2],
      ["test.plain", 1],
    ]);
    await writer.submit((tx) => scheduler.cancel(tx, "test.keyed", "b"));
    await server.restart();
    expect(await waiting()).toEqual([
      ["test.keyed", 1],
      ["test.plain", 1],
    ]);
    // No handler runs this kind: it stays due.
    await server.clock.advance(3_600_001);
    const seen = await look();
    expect(seen.value("ninefold_jobs_due", { kind: "test.plain" })).toBe(1);
    expect(seen.find("ninefold_job_lateness_seconds_count", { kind: "test.plain" })).toBeNull();
  });

  test("late jobs after a downtime", async () => {
    await account.post("/v1/relay", { ...relay, target_url: sink.url() });
    await server.server.stop();
    await server.clock.advance(10_000 + 40_000);
    await server.start();
    await server.clock.advance(0);
    const seen = await look();
    expect(seen.value("ninefold_job_lateness_seconds_sum", { kind })).toBe(40);
    expect(seen.value("ninefold_job_lateness_seconds_bucket", { kind, le: "30" })).toBe(0);
    expect(seen.value("ninefold_job_lateness_seconds_bucket", { kind, le: "60" })).toBe(1);
  });

  test("jobs without capacity are due, and overdue since the oldest", async () => {
    // 16 places to one host: the others wait.
    for (let n = 0; n < 20; n += 1) await account.post("/v1/relay", { ...relay, target_url: sink.url() });
    const open: (() => void)[] = [];
    sink.answersBy(() => new Promise((resolve) => open.push(() => resolve(new Response()))));
    await server.server.stop();
    await server.clock.advance(10_000 + 25_000);
    await server.start();
    const advanced = server.clock.advance(0);
    while (open.length < 16) await Bun.sleep(1);
    const seen = await look();
    expect(seen.value("ninefold_jobs_running", { kind })).toBe(16);
    expect(seen.value("ninefold_jobs_waiting", { kind })).toBe(4);
    expect(seen.value("ninefold_jobs_due", { kind })).toBe(4);
    expect(seen.value("ninefold_jobs_overdue_seconds", { kind })).toBe(25);
    sink.answersBy(() => 200);
    for (const answer of open) answer();
    await advanced;
    expect((await look()).value("ninefold_jobs_overdue_seconds", { kind })).toBe(0);
  });

  test("jobs with a failing handler, and recurring ones", async () => {
    await account.post("/v1/relay", { ...relay, target_url: sink.url() });
    sink.answers(500, 200);
    await server.clock.advance(11_500);
    expect((await look()).counts("ninefold_job_runs_total")).toEqual({
      [`${kind} again`]: 1,
      [`${kind} done`]: 1,
    });
    await account.post("/v1/relay", { ...relay, target_url: sink.url() });
    // Sealed headers that cannot be opened are a bug for the handler.
    await server.server.kernel.writer.submit((tx) =>
      server.server.kernel.db.change("UPDATE relays SET headers = x'00'")(tx),
    );
    await server.clock.advance(10_000);
    expect((await look()).counts("ninefold_job_runs_total")).toMatchObject({ [`${kind} defect`]: 1 });
  });
});

describe("areas", () => {
  test("deliveries by outcome", async () => {
    const relay = { method: "POST", delay: "1s", payload: {}, headers: {}, target_url: sink.url() };
    sink.answers(204, 404, 500, 500, 500, 500);
    await account.post("/v1/relay", relay);
    await server.clock.advance(1_000);
    await account.post("/v1/relay", relay);
    await server.clock.advance(1_000);
    await account.post("/v1/relay", relay);
    await server.clock.advance(60_000);
    const { body } = await account.post("/v1/relay", { ...relay, delay: "1h" });
    const path = `/v1/relay/${String(body["relay_id"])}`;
    expect([(await account.delete(path)).status, (await account.delete(path)).status]).toEqual([200, 200]);
    const seen = await look();
    expect(seen.counts("ninefold_relay_deliveries_total")).toEqual({
      "scheduled delivered": 1,
      "scheduled failed": 2,
      "scheduled cancelled": 1,
    });
    expect(seen.counts("ninefold_relay_retries_total")).toEqual({ scheduled: 3 });
  });

  test("checks by trigger and outcome; a monitor's notifications", async () => {
    const hooks = new WebhookSink();
    const terms = { url: sink.url(), interval: 15_000, webhook_url: hooks.url() };
    const { body } = await account.post("/v1/pulse", terms);
    const id = String(body["id"] ?? body["monitor_id"]);
    await server.clock.advance(5_000);
    sink.answers(500);
    expect((await account.post(`/v1/pulse/${id}/check`)).status).toBe(200);
    await server.clock.advance(30_000);
    hooks.stop();
    // One that was up, and the manual one.
    const down = sink.received.length - 2;
    expect(down).toBeGreaterThan(0);
    const seen = await look();
    expect(seen.counts("ninefold_monitor_checks_total")).toEqual({
      "scheduled up": 1,
      "scheduled down": down,
      "manual down": 1,
    });
    expect(seen.counts("ninefold_relay_deliveries_total")).toEqual({ "pulse delivered": 1 });
  });

  test("webhooks by result, and their forwarding", async () => {
    const free = await server.account({ tier: "free", balance: 62 });
    const { id } = await newBucket(free, { target_url: sink.url() });
    await accepted(server, id, "waits");
    await ingest(server, "no-such-000000");
    await server.client(null).post(`/v1/catch/${id}`, new Uint8Array(1024 * 1024 + 1));
    for (let n = 0; n < 60; n += 1) await ingest(server, id);
    sink.answers(500, 200);
    await setState(free, id, "live");
    await server.clock.advance(2_000);
    const seen = await look();
    const ingested = seen.counts("ninefold_webhooks_ingested_total");
    expect(ingested).toEqual({ accepted: 59, ignored: 1, too_large: 1, rate_limited: 2 });
    expect(seen.counts("ninefold_webhook_forwards_total")).toEqual({ retry: 1, delivered: 59 });
    expect(seen.counts("ninefold_credits_charged_total")).toEqual({ "catch.ingest": 59 });
  });

  test("charged and refunded credits", async () => {
    const headers = { "idempotency-key": "once" };
    for (let n = 0; n < 2; n += 1) {
      await account.post("/v1/meter/m/refill", { amount: 1 }, { headers });
    }
    // Rejected by the work: the charge is rolled back with it.
    expect((await account.post("/v1/meter/m/deduct", { amount: 5 })).status).toBe(402);
    const { id } = await newBucket(account, { target_url: "http://127.0.0.1:9/" });
    const event = await accepted(server, id);
    await setState(account, id, "live");
    expect((await account.post(`/v1/catch/${id}/events/${event}/replay`)).status).toBe(500);
    const seen = await look();
    expect(seen.counts("ninefold_credits_charged_total")).toEqual({
      "meter.refill": 1,
      "catch.ingest": 1,
      "catch.events.replay": 1,
    });
    expect(seen.counts("ninefold_credits_refunded_total")).toEqual({ "catch.events.replay": 1 });
  });
});
