import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { incidentStore, PROBE_ERROR_LENGTH_MAX } from "../../../../src/areas/incidents/store.ts";
import { RESULTS_BYTES_MAX, RESULTS_MAX } from "../../../../src/areas/monitors/probes/schema.ts";
import type { ProbeState } from "../../../../src/kernel/data/probe-state.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let server: TestServer;
let sink: WebhookSink;
let account: AccountClient;
let hookPath: string;
beforeAll(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  await server.stop();
  sink.stop();
});
beforeEach(async () => {
  account = await server.account({ tier: "pro" });
  hookPath = `/${crypto.randomUUID()}`;
});

/** A probe, as its process calls the server. */
class TestProbe {
  private results = 0;
  constructor(
    readonly id: string,
    readonly name: string,
    readonly client: Client,
  ) {}

  work(query = "wait_ms=0") {
    return this.client.get(`/v1/probe/work?${query}`);
  }

  send(...results: object[]) {
    return this.client.post("/v1/probe/results", { results: results.map((result) => this.result(result)) });
  }

  /** Sends one result of a monitor, which must be accepted. */
  async says(monitor_id: string, status: "up" | "down" | "unknown", more: object = {}): Promise<void> {
    const { body, text } = await this.send({ monitor_id, status, ...more });
    expect(body, text).toEqual({ accepted: 1, rejected: [] });
  }

  private result(given: object): object {
    this.results += 1;
    const usual = { result_id: `${this.name}-${this.results}`, age_ms: 0, status: "up", latency_ms: 20 };
    return {
      ...usual,
      ...("status" in given && given.status === "down" && { error: "timeout: none" }),
      ...given,
    };
  }
}

async function probe(name: string, more: object = {}): Promise<TestProbe> {
  const { status, body, text } = await account.post("/v1/pulse/probes", { name, ...more });
  expect([status, text]).toEqual([201, expect.any(String)]);
  expect(String(body["token"])).toMatch(/^probe_[A-Za-z0-9]{43}_[0-9a-f]{8}$/);
  return new TestProbe(String(body["id"]), name, server.client(String(body["token"])));
}

async function monitor(probes: readonly string[], more: object = {}): Promise<string> {
  const settings = { url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes };
  const { status, body, text } = await account.post("/v1/pulse", { ...settings, ...more });
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
}

const view = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;
const history = async (id: string, query = "") =>
  (await account.get(`/v1/pulse/${id}/history?limit=10${query}`)).body as Record<string, unknown> & {
    checks: Record<string, unknown>[];
  };
/** Alerts of the test, and not of accounts of others. */
const alerts = () =>
  sink
    .take()
    .filter(({ path }) => path === hookPath)
    .map(({ body }) => JSON.parse(body) as Record<string, unknown>);
async function hook(): Promise<void> {
  const created = await account.post("/v1/pulse/channels", {
    name: "Hook",
    kind: "webhook",
    config: { url: sink.url(hookPath) },
  });
  expect(created.status).toBe(201);
}

describe("a probe", () => {
  test("has a name of its own in the project, a token that is shown once, and a location that can change", async () => {
    const { id } = await probe("fra", { location: "Frankfurt" });
    expectError(await account.post("/v1/pulse/probes", { name: "fra" }), "probe_name_taken");
    for (const name of ["local", "Fra", "-a", "a".repeat(33), ""])
      expectError(await account.post("/v1/pulse/probes", { name }), "validation_error");
    const { body } = await account.patch(`/v1/pulse/probes/${id}`, { location: "Berlin" });
    expect(body).toMatchObject({ name: "fra", location: "Berlin", status: "new", last_seen_at: null });
    expect(body["token"]).toBeUndefined();
    const { body: page } = await account.get("/v1/pulse/probes");
    expect(page["probes"]).toEqual([body]);
  });

  test("audits without its token", async () => {
    const { id } = await probe("fra");
    const { body } = await account.get("/v1/audit?limit=1");
    const [entry] = body["entries"] as Record<string, unknown>[];
    expect(entry).toMatchObject({ target: { id }, after: { name: "fra", location: null } });
    expect(JSON.stringify(body)).not.toContain("probe_");
  });

  test("has a metric once it was seen, until it is deleted", async () => {
    const metrics = async () =>
      (await server.operator.get("/metrics")).text
        .split("\n")
        .filter((line) => line.startsWith("ninefold_probe_online{") && line.includes('probe="metered"'));
    const metered = await probe("metered");
    expect(await metrics()).toEqual([]);
    await metered.work();
    const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
    const series = `ninefold_probe_online{project="${project?.id}",probe="metered"}`;
    expect(await metrics()).toEqual([`${series} 1`]);
    await server.clock.advance(3 * MINUTE);
    expect(await metrics()).toEqual([`${series} 0`]);
    await account.delete(`/v1/pulse/probes/${metered.id}`);
    expect(await metrics()).toEqual([]);
  });

  test("counts towards the limit of the tier", async () => {
    account = await server.account({ tier: "free" });
    expectError(await account.post("/v1/pulse/probes", { name: "a" }), "probe_limit_exceeded");
    account = await server.account({ tier: "starter" });
    await probe("a");
    const { id } = await probe("b");
    expectError(await account.post("/v1/pulse/probes", { name: "c" }), "probe_limit_exceeded");
    expect((await account.delete(`/v1/pulse/probes/${id}`)).status).toBe(200);
    await probe("c");
  });

  test("cannot be deleted while it alone checks a monitor, and leaves the others", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const only = await monitor(["fra"]);
    const both = await monitor(["fra", "nyc"]);
    expectError(await account.delete(`/v1/pulse/probes/${fra.id}`), "probe_in_use");
    expect((await account.delete(`/v1/pulse/probes/${nyc.id}`)).status).toBe(200);
    expect((await view(both))["probes"]).toEqual(["fra"]);
    expectError(await nyc.work(), "unauthorized");
    expect((await account.delete(`/v1/pulse/${only}`)).status).toBe(200);
  });

  test("gets the monitors that name it, with what their checks need and nothing of alerts", async () => {
    const fra = await probe("fra");
    await monitor(["local"], { url: "https://127.0.0.1:9/" });
    const id = await monitor(["fra"], {
      headers: { "X-Key": "s3cret" },
      webhook_url: "https://127.0.0.1:9/hook",
    });
    const { body } = await fra.work();
    expect(body).toMatchObject({ reset: true, complete: true, due: [], scheduled: false });
    const monitors = body["monitors"] as Record<string, unknown>[];
    expect(monitors).toMatchObject([{ monitor_id: id, type: "http", headers: { "X-Key": "s3cret" } }]);
    expect(JSON.stringify(body)).not.toContain("hook");
    const next = await fra.work(`wait_ms=0&after=${body["cursor"]}`);
    expect(next.body).toMatchObject({ reset: false, monitors: [], cursor: body["cursor"] });
  });

  test("waits for a change, and another request ends the wait", async () => {
    const fra = await probe("fra");
    const { body } = await fra.work();
    const waiting = fra.work(`wait_ms=55000&after=${body["cursor"]}`);
    await until(async () => (await account.get("/v1/pulse/probes")).text.includes('"online"'));
    const second = fra.work(`wait_ms=55000&after=${body["cursor"]}`);
    expect((await waiting).body).toMatchObject({ monitors: [], cursor: body["cursor"] });
    const id = await monitor(["fra"]);
    expect((await second).body["monitors"]).toMatchObject([{ monitor_id: id }]);
  });

  test("is rejected immediately when it is deleted, also while it waits", async () => {
    const fra = await probe("fra");
    const { body } = await fra.work();
    const waiting = fra.work(`wait_ms=55000&after=${body["cursor"]}`);
    await until(async () => (await account.get("/v1/pulse/probes")).text.includes('"online"'));
    await account.delete(`/v1/pulse/probes/${fra.id}`);
    expectError(await waiting, "unauthorized");
    expectError(await fra.send(), "unauthorized");
  });

  test("may be one minor version apart", async () => {
    const fra = await probe("fra");
    const { version } = (await import("../../../../package.json")).default;
    const [major, minor] = version.split(".").map(Number);
    const at = (change: number) => fra.work(`wait_ms=0&version=${major}.${Number(minor) + change}.7`);
    expect((await at(1)).status).toBe(200);
    expectError(await at(2), "probe_version_unsupported");
  });

  test("is unknown to others: a key is no token, and a token no key", async () => {
    const fra = await probe("fra");
    expectError(await account.get("/v1/probe/work?wait_ms=0"), "unauthorized");
    expectError(await fra.client.get("/v1/pulse"), "unauthorized");
  });
});

describe("results", () => {
  test("count once, for monitors of the probe, and up to 7 days back", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const [own, foreign] = [await monitor(["fra"]), await monitor(["nyc"])];
    await nyc.says(foreign, "up");
    const result = { result_id: "same", monitor_id: own };
    const { body } = await fra.send(
      ...[result, result, { monitor_id: foreign }, { monitor_id: crypto.randomUUID() }, { monitor_id: "x" }],
      ...[
        { monitor_id: own, age_ms: -1 },
        { monitor_id: own, age_ms: 7 * DAY + 1 },
      ],
    );
    const reasons = ["duplicate", "unknown_monitor", "unknown_monitor", "unknown_monitor", "age", "age"];
    const rejected = reasons.map((reason, index) => ({ index: index + 1, reason }));
    expect(body).toEqual({ accepted: 1, rejected });
    expect((await history(own)).checks).toMatchObject([{ probe: "fra", status: "up" }]);
    expect((await history(foreign)).checks).toHaveLength(1);
  });

  test("are limited in number and size", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    const many = (count: number) => Array.from({ length: count }, () => ({ monitor_id: id }));
    expect((await fra.send(...many(RESULTS_MAX))).body).toMatchObject({ accepted: RESULTS_MAX });
    expectError(await fra.send(...many(RESULTS_MAX + 1)), "validation_error");
    const pad = "x".repeat(RESULTS_BYTES_MAX);
    expectError(await fra.client.post("/v1/probe/results", { results: [], pad }), "request_too_large");
  });

  test("that are older than interval and timeout are stored in their place in the history, and change nothing", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await server.clock.advance(10 * MINUTE);
    await fra.says(id, "up");
    await fra.says(id, "down", { age_ms: 5 * MINUTE });
    expect(await view(id)).toMatchObject({ status: "up", failing: false });
    const { checks, uptime } = await history(id);
    expect(checks.map(({ status }) => status)).toEqual(["up", "down"]);
    expect(uptime).toMatchObject({ "24h": 100 });
  });

  test("of a request that was delayed on its way are as old as they are", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await server.clock.advance(10 * MINUTE);
    const run = "1f0c";
    expect((await fra.work(`wait_ms=0&run=${run}&sent_ms=500000`)).status).toBe(200);
    await fra.says(id, "up");
    const late = { result_id: "late", monitor_id: id, age_ms: 0, status: "down", error: "timeout: none" };
    const body = { results: [late], run, sent_ms: 200_000 };
    expect((await fra.client.post("/v1/probe/results", body)).body).toEqual({ accepted: 1, rejected: [] });
    expect(await view(id)).toMatchObject({ status: "up", failing: false });
    const { checks } = await history(id);
    expect(checks.map(({ status }) => status)).toEqual(["up", "down"]);
    const [up, down] = checks.map(({ checked_at }) => Number(checked_at)) as [number, number];
    expect(up - down).toBeGreaterThanOrEqual(300);
    // A delay and an age that are too long together are rejected as such an age is.
    const older = {
      results: [{ ...late, result_id: "older", age_ms: 7 * DAY - 1_000 }],
      run,
      sent_ms: 200_000,
    };
    expect((await fra.client.post("/v1/probe/results", older)).body).toEqual({
      accepted: 0,
      rejected: [{ index: 0, reason: "age" }],
    });
  });

  test("that a probe could not make are no votes: those of others decide", async () => {
    await hook();
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const settings = { type: "icmp", url: undefined, host: "10.9.8.7", confirm: "any" };
    const id = await monitor(["fra", "nyc"], settings);
    const [work] = (await fra.work()).body["monitors"] as object[];
    expect(work).toMatchObject({ type: "icmp", host: "10.9.8.7", packets: 3, max_loss_percent: 99 });
    const lost = { sent: 3, received: 0, loss_percent: 100, min_ms: null, avg_ms: null, max_ms: null };
    await fra.says(id, "up", {
      icmp: { ...lost, received: 3, loss_percent: 0, min_ms: 1, avg_ms: 2, max_ms: 3 },
    });
    await nyc.says(id, "down", { icmp: lost });
    expect(await view(id)).toMatchObject({ status: "down", icmp: lost });
    await server.clock.advance(1_000);
    expect(alerts()).toMatchObject([{ event: "monitor.down", icmp: lost }]);
    const error = "unsupported: the command ping is not installed";
    await nyc.says(id, "unknown", { error });
    expect(await view(id)).toMatchObject({
      status: "up",
      probe_states: [
        { name: "fra", status: "up" },
        { name: "nyc", status: "unknown", online: true, error },
      ],
    });
    await server.clock.advance(1_000);
    expect(alerts()).toMatchObject([{ event: "monitor.up" }]);
    await fra.says(id, "unknown", { error });
    expect(await view(id)).toMatchObject({ status: "unknown", error, incident_id: null });
    await server.clock.advance(1_000);
    expect(alerts()).toMatchObject([{ event: "monitor.unknown", previous_status: "up", error }]);
    const { checks } = await history(id);
    expect(checks.map(({ probe, status, icmp }) => [probe, status, icmp])).toMatchObject([
      ["fra", "unknown", undefined],
      ["nyc", "unknown", undefined],
      ["nyc", "down", lost],
      ["fra", "up", { received: 3, loss_percent: 0, avg_ms: 2 }],
    ]);
    await nyc.says(id, "down", { icmp: lost });
    expect(await view(id)).toMatchObject({ status: "down" });
    await nyc.says(id, "unknown", { error });
    expect(await view(id)).toMatchObject({ status: "unknown" });
    const incidents = (await account.get(`/v1/pulse/incidents?monitor_id=${id}`)).body[
      "incidents"
    ] as object[];
    expect(incidents[0]).toMatchObject({ resolved_at: null });
    await fra.says(id, "up");
    expect(await view(id)).toMatchObject({ status: "up" });
    expectError(await fra.send({ monitor_id: id, icmp: { ...lost, sent: 11 } }), "validation_error");
  });

  test("of a probe that is offline itself are no votes", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await fra.says(id, "up");
    await server.clock.advance(MINUTE);
    await fra.says(id, "down", { observer_offline: true });
    expect((await view(id))["status"]).toBe("up");
    expect((await history(id)).checks[0]).toMatchObject({ observer_offline: true });
  });

  test("show what each probe sees, in the history too", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"]);
    await fra.says(id, "up", { latency_ms: 30 });
    await nyc.says(id, "up", { latency_ms: 70 });
    expect((await view(id))["probe_states"]).toMatchObject([
      { name: "fra", status: "up", online: true, latency_ms: 30, error: null },
      { name: "nyc", status: "up", online: true, latency_ms: 70, error: null },
    ]);
    expect((await history(id, "&probe=nyc")).checks).toMatchObject([{ probe: "nyc", latency_ms: 70 }]);
    const { series_by_probe } = await history(id, "&range=24h");
    expect(series_by_probe).toMatchObject({
      fra: { buckets: [{ checks: 1, latency_ms: 30 }] },
      nyc: { buckets: [{ checks: 1, latency_ms: 70 }] },
    });
  });
});

describe("under a test clock", () => {
  test("a probe that does not wait gets what was due with its next request, and an advance does not wait for it", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"], { timeout: 30_000 });
    const { body } = await fra.work();
    expect(body["due"]).toEqual([]);
    for (let round = 0; round < 2; round += 1) {
      await server.clock.advance(MINUTE);
      expect((await fra.work(`wait_ms=0&after=${body["cursor"]}`)).body["due"]).toEqual([id]);
    }
    await fra.says(id, "up");
    expect((await history(id)).checks).toMatchObject([{ status: "up", manual: false, probe: "fra" }]);
  });

  test("an advance waits for the results of probes that wait", async () => {
    const fra = await probe("fra");
    // Its second check is not due yet when the advance ends.
    const id = await monitor(["fra"], { timeout: 30_000, interval: DAY });
    const { body } = await fra.work();
    const waiting = fra.work(`wait_ms=55000&after=${body["cursor"]}&queue=3`);
    await until(async () => (await account.get(`/v1/pulse/probes/${fra.id}`)).text.includes('"queue":3'));
    let isOver = false;
    const advanced = server.clock.advance(5_000).then(() => {
      isOver = true;
    });
    expect((await waiting).body["due"]).toEqual([id]);
    expect(isOver).toBe(false);
    await fra.says(id, "down");
    await advanced;
    expect((await view(id))["status"]).toBe("down");
    // Advances of other tests would wait for it.
    await account.delete(`/v1/pulse/${id}`);
  });
});

describe("votes", () => {
  const CASES = [
    ["any", ["down", "up", "up"]],
    ["majority", ["degraded", "down", "down"]],
    ["all", ["degraded", "degraded", "down"]],
  ] as const;
  test.each(CASES)(
    "of three probes, with %s: one, two and three that see it down",
    async (confirm, expected) => {
      await hook();
      const probes = [await probe("a"), await probe("b"), await probe("c")];
      const id = await monitor(["a", "b", "c"], { confirm });
      for (const probe of probes) await probe.says(id, "up");
      const seen: unknown[] = [];
      for (const probe of probes) {
        await server.clock.advance(1_000);
        await probe.says(id, "down");
        seen.push((await view(id))["status"]);
      }
      const wanted = confirm === "any" ? ["down", "down", "down"] : expected;
      expect(seen).toEqual([...wanted]);
      await server.clock.advance(1_000);
      const down = alerts().filter(({ event }) => event === "monitor.down");
      expect(down).toHaveLength(1);
      expect(down[0]?.["probe_states"]).toHaveLength(3);
      for (const probe of probes) await probe.says(id, "up");
      expect(await view(id)).toMatchObject({ status: "up", degraded: false, degraded_reason: null });
    },
  );

  test("steps of an escalation say what each probe sees", async () => {
    await hook();
    const { channels } = (await account.get("/v1/pulse/channels")).body as { channels: { id: string }[] };
    const [first] = channels;
    const config = { url: sink.url("/first") };
    const escalate = [{ after_ms: 60_000, channel_ids: [first?.id] }];
    const more = { name: "First", kind: "webhook", config, escalate };
    expect((await account.post("/v1/pulse/channels", more)).status).toBe(201);
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"]);
    for (const each of [fra, nyc]) await each.says(id, "down");
    await server.clock.advance(61_000);
    const step = alerts().find(({ escalation_step }) => escalation_step === 1);
    expect(step?.["probe_states"]).toMatchObject([{ name: "fra" }, { name: "nyc", status: "down" }]);
  });

  test("two probes of which one sees it down are no majority: the target is degraded, and listed so", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"]);
    await fra.says(id, "up");
    await nyc.says(id, "down");
    expect(await view(id)).toMatchObject({ status: "degraded", degraded: true, degraded_reason: "probes" });
    const { body } = await account.get("/v1/pulse?status=degraded");
    expect(body["monitors"]).toMatchObject([{ monitor_id: id }]);
  });

  test("of others say why the target is down, also after the check of one that sees it up", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    for (const confirm of ["any", "majority"]) {
      const id = await monitor(["fra", "nyc"], { confirm });
      await nyc.says(id, "down", { error: "timeout: none" });
      await server.clock.advance(1_000);
      await fra.says(id, "up");
      const status = confirm === "any" ? "down" : "degraded";
      expect(await view(id)).toMatchObject({ status, error: "timeout: none" });
      await nyc.says(id, "up");
      expect(await view(id)).toMatchObject({ status: "up", error: null });
    }
  });

  test("are cast after the threshold of each probe", async () => {
    const [fra, nyc] = [await probe("fra"), await probe("nyc")];
    const id = await monitor(["fra", "nyc"], { consecutive_threshold: 2, confirm: "any" });
    await fra.says(id, "up");
    await nyc.says(id, "up");
    await fra.says(id, "down");
    await nyc.says(id, "down");
    expect((await view(id))["status"]).toBe("up");
    await fra.says(id, "down");
    expect((await view(id))["status"]).toBe("down");
  });

  test("lapse: without any, the status is unknown, its channels are notified, and no time counts", async () => {
    await hook();
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await fra.says(id, "up");
    await server.clock.advance(30 * MINUTE);
    expect(await view(id)).toMatchObject({ status: "unknown", incident_id: null });
    const events = alerts().map(({ event }) => event);
    expect(events.toSorted()).toEqual(["monitor.unknown", "probe.offline"]);
    const { body } = await account.get("/v1/pulse/probes");
    expect(body["probes"]).toMatchObject([{ name: "fra", status: "offline" }]);
    await fra.says(id, "up");
    await server.clock.advance(1_000);
    expect(alerts()).toMatchObject([{ event: "probe.online", probe: "fra" }]);
    expect((await history(id)).uptime).toMatchObject({ "24h": 100 });
  });

  test("an outage continues over the time in which nobody checks", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    await fra.says(id, "up");
    await fra.says(id, "down");
    const { incident_id } = await view(id);
    expect(incident_id).toBeString();
    await server.clock.advance(30 * MINUTE);
    expect((await view(id))["status"]).toBe("unknown");
    await fra.says(id, "down");
    expect((await view(id))["incident_id"]).toBe(incident_id as string);
    await fra.says(id, "up");
    const { body } = await account.get(`/v1/pulse/incidents/${incident_id}`);
    expect(body["status"]).toBe("resolved");
  });
});

describe("an incident", () => {
  const states = async (path: string) => (await account.get(path)).body["probe_states"];
  const incidentOf = async (id: string) => `/v1/pulse/incidents/${(await view(id))["incident_id"]}`;

  test("shows what each probe sees, and after its end what each saw at its beginning, as the alert and the view do", async () => {
    await hook();
    const { channels } = (await account.get("/v1/pulse/channels")).body as { channels: { id: string }[] };
    const escalate = [{ after_ms: MINUTE, channel_ids: [channels[0]?.id] }];
    const first = { name: "First", kind: "webhook", config: { url: sink.url("/first") }, escalate };
    expect((await account.post("/v1/pulse/channels", first)).status).toBe(201);
    const [fra, nyc, sgp] = [await probe("fra"), await probe("nyc"), await probe("sgp")];
    const id = await monitor(["fra", "nyc", "sgp"]);
    await sgp.says(id, "up");
    await fra.says(id, "down", { error: "connect: refused" });
    await nyc.says(id, "down");
    const path = await incidentOf(id);
    const atStart = await states(path);
    expect(atStart).toMatchObject([
      { name: "fra", status: "down", online: true, error: "connect: refused" },
      { name: "nyc", status: "down", error: "timeout: none" },
      { name: "sgp", status: "up", error: null, latency_ms: 20 },
    ]);
    await server.clock.advance(1_000);
    expect(alerts().find(({ event }) => event === "monitor.down")?.["probe_states"]).toEqual(atStart);
    await sgp.says(id, "down");
    await server.clock.advance(MINUTE);
    const now = (await view(id))["probe_states"];
    expect(now).not.toEqual(atStart);
    expect(await states(path)).toEqual(now);
    const step = alerts().find(({ escalation_step }) => escalation_step === 1);
    expect(step?.["probe_states"]).toEqual(now);
    for (const each of [fra, sgp]) await each.says(id, "up");
    expect((await account.get(path)).body).toMatchObject({ status: "resolved", probe_states: atStart });
    // Neither lists nor the responses to changes have it, as the other details of its monitors.
    const { body } = await account.get(`/v1/pulse/incidents?monitor_id=${id}`);
    const [listed] = body["incidents"] as object[];
    const changed = await account.patch(path, { title: "Shop" });
    for (const shown of [listed, changed.body]) expect(shown).not.toHaveProperty("probe_states");
    const { text } = await server.operator.get(`/v1/admin/accounts/${account.userId}/export`);
    const exported = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(exported.find(({ type }) => type === "incident")).toMatchObject({ probe_states: atStart });
    await account.delete(`/v1/pulse/${id}`);
    expect(await states(path)).toEqual(atStart);
  });

  test("shows none where only the server checks, nor as a manual one", async () => {
    const id = await monitor(["local"], { url: sink.url("/none") });
    sink.answers(503);
    await server.clock.advance(2 * MINUTE);
    const path = await incidentOf(id);
    sink.answers(200);
    expect(await states(path)).toEqual([]);
    const fra = await probe("fra");
    const seen = await monitor(["fra"]);
    await fra.says(seen, "down");
    const manual = { title: "Slow", monitor_ids: [seen] };
    const { body } = await account.post("/v1/pulse/incidents", manual);
    expect(await states(`/v1/pulse/incidents/${body["id"]}`)).toEqual([]);
    // A monitor of one probe is as that of several.
    expect(await states(await incidentOf(seen))).toMatchObject([{ name: "fra", status: "down" }]);
  });

  test("stores a bounded part of long errors", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    const error = "x".repeat(PROBE_ERROR_LENGTH_MAX);
    await fra.says(id, "down", { error });
    const path = await incidentOf(id);
    await fra.says(id, "up");
    const [kept] = (await states(path)) as ProbeState[];
    expect(kept?.error).toBe(error);
    // Probes send no longer ones, and the server may.
    const { db, writer } = server.server.kernel;
    const incidents = incidentStore(db);
    const { ref = 0 } = incidents.find(path.slice("/v1/pulse/incidents/".length)) ?? {};
    const long = { name: "local", status: "down", online: true, latency_ms: 1, last_checked_at: 1 } as const;
    await writer.submit((tx) => incidents.setProbeStates(tx, ref, [{ ...long, error: `${error}y` }]));
    expect(await states(path)).toEqual([{ ...long, error }]);
  });

  test("shows visitors of status pages nothing of probes", async () => {
    const fra = await probe("fra-secret");
    const id = await monitor(["fra-secret"], { name: "Shop" });
    const slug = `p${crypto.randomUUID().slice(0, 8)}`;
    const groups = [{ name: "All", monitor_ids: [id] }];
    const page = { slug, title: "Acme", groups, publish_incidents: "all" };
    expect((await account.post("/v1/pulse/pages", page)).status).toBe(201);
    await fra.says(id, "down", { error: "timeout: of fra-secret" });
    const path = await incidentOf(id);
    expect((await account.patch(path, { public: true })).status).toBe(200);
    await server.clock.advance(MINUTE);
    const incident = path.replace("/v1/pulse/incidents/", "");
    for (const shown of ["", ".json", "/feed.atom", `/incidents/${incident}`]) {
      const response = await fetch(`${server.url}/status/${slug}${shown}`);
      const text = await response.text();
      expect([response.status, shown]).toEqual([200, shown]);
      expect(text).toContain("Shop");
      expect(text).not.toContain("fra-secret");
      expect(text).not.toContain("probe_states");
    }
  });
});

describe("a monitor", () => {
  test("names probes of its project", async () => {
    const created = await account.post("/v1/pulse", {
      url: "https://127.0.0.1:9/",
      interval: MINUTE,
      probes: ["x"],
    });
    expectError(created, "validation_error");
    const beat = await account.post("/v1/pulse", { type: "heartbeat", probes: ["local"] });
    expectError(beat, "validation_error");
  });

  test("may lead to private addresses only while the server does not check it", async () => {
    await probe("fra");
    const settings = { url: "https://10.9.8.7/", interval: MINUTE };
    expectError(await account.post("/v1/pulse", settings), "validation_error");
    expectError(
      await account.post("/v1/pulse", { ...settings, probes: ["local", "fra"] }),
      "validation_error",
    );
    const id = await monitor(["fra"]);
    expectError(await account.put(`/v1/pulse/${id}`, { probes: ["local"] }), "validation_error");
    expect((await account.put(`/v1/pulse/${id}`, { url: "https://10.9.8.8/" })).status).toBe(200);
  });

  test("is checked manually by the probe that is online, or the named one", async () => {
    const fra = await probe("fra");
    const id = await monitor(["fra"]);
    expectError(await account.post(`/v1/pulse/${id}/check`), "probe_offline");
    expectError(await account.post(`/v1/pulse/${id}/check?probe=nyc`), "validation_error");
    const { body } = await fra.work();
    const asked = account.post(`/v1/pulse/${id}/check?probe=fra`);
    const work = await fra.work(`wait_ms=55000&after=${body["cursor"]}`);
    expect(work.body["due"]).toEqual([id]);
    await fra.says(id, "up");
    expect((await asked).body).toMatchObject({ status: "up", monitor_id: id });
    expect((await history(id)).checks).toMatchObject([{ manual: true, probe: "fra" }]);
  });
});
