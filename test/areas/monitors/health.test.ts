import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const SECOND = 1_000;
/** The threshold of slow responses, and the duration of one: a busy machine must not reach the threshold without it. */
const SLOW_MS = 1_000;
const PAUSE_MS = 1_050;

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
let hooks: WebhookSink;
let isSlow = false;
/** A path whose responses are never slow: each slow one takes real time. */
const FAST = "/fast";
beforeEach(async () => {
  isSlow = false;
  site = new WebhookSink();
  site.answersBy(async ({ path }) => {
    if (isSlow && path !== FAST) await Bun.sleep(PAUSE_MS);
    return new Response();
  });
  hooks = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account({ tier: "unlimited" });
});
afterEach(async () => {
  await server.stop();
  site.stop();
  hooks.stop();
});

const create = async (change: object): Promise<string> => {
  const { status, body } = await account.post("/v1/pulse", { url: site.url(), interval: 15_000, ...change });
  expect(status).toBe(201);
  return String(body["id"]);
};
const shown = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;
const told = () => hooks.take().map(({ body }) => JSON.parse(body) as Record<string, unknown>);
const channel = (events: readonly string[]) =>
  account.post("/v1/pulse/channels", {
    name: "hooks",
    kind: "webhook",
    config: { url: hooks.url() },
    default: true,
    events,
  });

describe("a target that becomes slow", () => {
  const EVENTS = ["monitor.down", "monitor.up", "monitor.degraded", "monitor.recovered"];
  const list = async (query: string) =>
    ((await account.get(`/v1/pulse?${query}`)).body["monitors"] as { monitor_id: string }[]).map(
      ({ monitor_id }) => monitor_id,
    );

  test("is degraded after three slow checks, stays up, is reported and listed, and recovers after three fast ones", async () => {
    await channel(EVENTS);
    const id = await create({ name: "Shop", degraded_ms: SLOW_MS, notify_degraded: true });
    const other = await create({ name: "Other", url: site.url(FAST) });
    await server.clock.advance(20 * SECOND);
    isSlow = true;
    await server.clock.advance(30 * SECOND);
    expect(await shown(id)).toMatchObject({ status: "up", degraded: false });
    expect([told(), await list("status=degraded")]).toEqual([[], []]);
    await server.restart();
    account = server.client(account.key) as AccountClient;
    await server.clock.advance(15 * SECOND);
    expect(await shown(id)).toMatchObject({ status: "up", degraded: true, failing: false });
    const [notice, ...more] = told();
    expect(more).toEqual([]);
    expect(notice).toMatchObject({
      event: "monitor.degraded",
      monitor_id: id,
      name: "Shop",
      status: "up",
      degraded_ms: SLOW_MS,
      text: `responds in ${notice?.["latency_ms"]} ms, more than ${SLOW_MS} ms`,
    });
    expect(await list("status=degraded")).toEqual([id]);
    expect(await list("status=degraded&active=true")).toEqual([id]);
    expect(await list("status=degraded&active=false")).toEqual([]);
    expect(await list("status=degraded&name=Shop")).toEqual([id]);
    expect(await list("status=degraded&name=Other")).toEqual([]);
    expect(await list("status=up")).toEqual([other, id]);
    expect(await list("status=up&active=true")).toEqual([other, id]);
    await server.clock.advance(30 * SECOND);
    expect(told()).toEqual([]);
    isSlow = false;
    await server.clock.advance(30 * SECOND);
    expect([(await shown(id))["degraded"], told()]).toEqual([true, []]);
    await server.clock.advance(15 * SECOND);
    expect([(await shown(id))["degraded"], await list("status=degraded")]).toEqual([false, []]);
    expect(told()).toMatchObject([{ event: "monitor.recovered" }]);
    expect((await account.get(`/v1/pulse/${id}/history?limit=1`)).body["uptime"]).toMatchObject({
      "24h": 100,
    });
  }, 60_000);

  test("is reported only if monitor and channel request it, and not by a manual check", async () => {
    const made = await channel(EVENTS);
    const silent = await create({ degraded_ms: SLOW_MS, interval: 300_000 });
    const wanted = await create({ degraded_ms: SLOW_MS, interval: 300_000, notify_degraded: true });
    isSlow = true;
    for (let number = 0; number < 3; number += 1) await account.post(`/v1/pulse/${wanted}/check`);
    expect(await shown(wanted)).toMatchObject({ degraded: true });
    await account.put(`/v1/pulse/${wanted}`, { active: false });
    await account.patch(`/v1/pulse/channels/${made.body["id"]}`, { events: ["monitor.down"] });
    const third = await create({ degraded_ms: SLOW_MS, interval: 300_000, notify_degraded: true });
    await server.clock.advance(900 * SECOND);
    for (const id of [silent, third]) expect(await shown(id)).toMatchObject({ degraded: true });
    expect(told()).toEqual([]);
  }, 60_000);
});

describe("a target that fails", () => {
  /** Seconds between its received requests. */
  async function gaps(change: object, seconds: number): Promise<{ id: string; gaps: number[] }> {
    const at: number[] = [];
    const id = await create({ interval: 60_000, ...change });
    await server.clock.advance(120 * SECOND);
    site.answersBy(() => {
      at.push(server.clock.now());
      return 500;
    });
    await server.clock.advance(seconds * SECOND);
    return { id, gaps: at.slice(1).map((time, index) => Math.round((time - (at[index] ?? 0)) / 1_000)) };
  }

  test("is checked at retry_interval until it is down, then at the interval", async () => {
    const found = await gaps({ retry_interval: 5_000, consecutive_threshold: 4 }, 300);
    expect(found.gaps.slice(0, 3)).toEqual([5, 5, 5]);
    expect(found.gaps[3]).toBeWithin(30, 91);
    expect(found.gaps[4]).toBe(60);
    expect(await shown(found.id)).toMatchObject({ status: "down", failing: false });
  });

  test("is checked at the interval without retry_interval", async () => {
    expect(new Set((await gaps({ consecutive_threshold: 4 }, 300)).gaps)).toEqual(new Set([60]));
  });

  test("is checked at the interval if the first failure makes it down", async () => {
    expect(new Set((await gaps({ retry_interval: 5_000 }, 300)).gaps)).toEqual(new Set([60]));
  });

  test("is `failing` below the threshold; retries continue after a restart and end with a success", async () => {
    const found = await gaps({ retry_interval: 10_000, consecutive_threshold: 10 }, 75);
    const failures = Number((await shown(found.id))["consecutive_failures"]);
    expect(failures).toBeWithin(1, 10);
    expect(await shown(found.id)).toMatchObject({ status: "up", failing: true });
    await server.restart();
    account = server.client(account.key) as AccountClient;
    await server.clock.advance(10 * SECOND);
    expect((await shown(found.id))["consecutive_failures"]).toBe(failures + 1);
    site.answers(200);
    await server.clock.advance(10 * SECOND);
    expect(await shown(found.id)).toMatchObject({ status: "up", failing: false });
    site.take();
    await server.clock.advance(600 * SECOND);
    expect(site.take().length).toBeWithin(9, 12);
  });

  test("a lower tier raises retry_interval immediately", async () => {
    account = await server.account({ tier: "scale", balance: 10 });
    const { body } = await account.post("/v1/pulse", {
      url: site.url(),
      interval: 300_000,
      retry_interval: 5_000,
      consecutive_threshold: 5,
    });
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "free" });
    const at: number[] = [];
    site.answersBy(() => {
      at.push(server.clock.now());
      return 500;
    });
    await server.clock.advance(90 * SECOND);
    expect(at.slice(1).map((time, index) => time - (at[index] ?? 0))).toEqual([30_000, 30_000]);
    expect((await shown(String(body["id"])))["retry_interval"]).toBe(5_000);
  });
});

test("alerts, incident and channel wait for recovery_threshold successes", async () => {
  await channel(["monitor.down", "monitor.up"]);
  site.answers(500);
  const id = await create({ recovery_threshold: 3 });
  await server.clock.advance(5 * SECOND);
  expect(told()).toMatchObject([{ event: "monitor.down" }]);
  site.answers(200);
  site.take();
  const asked = async (times: number) => {
    while (site.received.length < times) await server.clock.advance(SECOND);
  };
  await asked(2);
  const waiting = await shown(id);
  expect(waiting).toMatchObject({ status: "down", consecutive_failures: 0, failing: false });
  expect([waiting["incident_id"], told()]).toEqual([expect.stringMatching(/^inc_/), []]);
  await server.restart();
  account = server.client(account.key) as AccountClient;
  await asked(3);
  expect(await shown(id)).toMatchObject({ status: "up", incident_id: null });
  expect(told()).toMatchObject([{ event: "monitor.up" }]);
});
