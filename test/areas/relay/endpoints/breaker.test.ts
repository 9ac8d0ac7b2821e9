import { describe, expect, test } from "bun:test";
import {
  afterFailure,
  nextProbeAt,
  Pace,
  PROBE_MS,
  PROBE_MS_MAX,
  Progress,
  SILENT_AFTER_MS,
} from "../../../../src/areas/relay/endpoints/breaker.ts";
import {
  NOTICE_INTERVAL_MS,
  NOTICE_SUBSCRIBERS_MAX,
  NOTICES_DELAYED_MAX,
} from "../../../../src/areas/relay/endpoints/notices.ts";
import { CLOSED, type Health, LIVE, OPEN } from "../../../../src/areas/relay/endpoints/store.ts";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const advance = (ms: number) => stage.server.clock.advance(ms);

describe("the health of an endpoint after a failed attempt", () => {
  const well: Health = {
    state: LIVE,
    disabled_reason: null,
    breaker: CLOSED,
    failures: 0,
    failing_since: null,
    probes: 0,
    next_probe_at: null,
    last_status: null,
    last_error: null,
    holds: 0,
    noticed_at: null,
    unnoticed: 0,
    retrying_ref: null,
  };
  const bounds = { breakerFailures: 3, disableAfterHours: 120 };
  const attempt = { status: 500, error: "no", isProbe: false };

  test("the breaker opens at its limit, not before", () => {
    expect(
      afterFailure({ ...well, failures: 1 }, attempt, bounds, 1_000, 0.5).change.breaker,
    ).toBeUndefined();
    const { change } = afterFailure({ ...well, failures: 2 }, attempt, bounds, 1_000, 0.5);
    expect(change).toMatchObject({
      breaker: OPEN,
      failures: 3,
      next_probe_at: 1_000 + PROBE_MS,
    });
  });

  test("a failed probe doubles the delay, up to its limit; another failure does not", () => {
    const open = {
      ...well,
      breaker: OPEN,
      failures: 9,
      probes: 1,
      failing_since: 0,
    };
    const probe = { ...attempt, isProbe: true };
    expect(afterFailure(open, probe, bounds, 0, 0.5).change).toMatchObject({
      probes: 2,
      next_probe_at: 4 * PROBE_MS,
    });
    expect(afterFailure(open, attempt, bounds, 0, 0.5).change.next_probe_at).toBeUndefined();
    expect(nextProbeAt(0, 5, 0.5)).toBe(PROBE_MS_MAX);
    expect(nextProbeAt(0, 1_000, 0.5)).toBe(PROBE_MS_MAX);
    expect([nextProbeAt(0, 0, 0), nextProbeAt(0, 0, 0.999999)]).toEqual([27_000, 33_000]);
  });

  test("it is disabled after its hours of continuous failure, over at least 12 hours", () => {
    const disabled = (failing_since: number | null, hours: number, now: number) =>
      afterFailure({ ...well, failing_since }, attempt, { ...bounds, disableAfterHours: hours }, now, 0)
        .disabledFor !== null;
    expect(disabled(0, 120, 120 * HOUR - 1)).toBe(false);
    expect(disabled(0, 120, 120 * HOUR)).toBe(true);
    expect(disabled(0, 1, 12 * HOUR - 1)).toBe(false);
    expect(disabled(0, 1, 12 * HOUR)).toBe(true);
    expect(disabled(0, 0, 1_000 * HOUR)).toBe(false);
    expect(disabled(null, 120, 1_000 * HOUR)).toBe(false);
    expect(afterFailure(well, { ...attempt, status: 410 }, bounds, 0, 0).disabledFor).toContain("410");
  });

  test("a rate permits the tokens of one second, then one at a time", () => {
    const pace = new Pace();
    const waits = Array.from({ length: 7 }, () => pace.take(1_000, 5));
    expect(waits).toEqual([0, 0, 0, 0, 0, 200, 400]);
    expect(pace.take(1_600, 5)).toBe(0);
    expect(Array.from({ length: 6 }, () => pace.take(60_000, 5))).toEqual([0, 0, 0, 0, 0, 200]);
  });
});

test("an endpoint is silent while attempts are in flight and none has finished for a second", () => {
  const progress = new Progress();
  expect(progress.isSilent(1, 10_000)).toBe(false);
  progress.started(1, 0);
  progress.started(1, 900);
  expect([progress.isSilent(1, SILENT_AFTER_MS), progress.isSilent(1, SILENT_AFTER_MS + 1)]).toEqual([
    false,
    true,
  ]);
  expect(progress.isSilent(2, 10_000)).toBe(false);
  progress.finished(1, 2_000);
  expect([progress.isSilent(1, 3_000), progress.isSilent(1, 3_001)]).toEqual([false, true]);
  progress.finished(1, 4_000);
  expect(progress.isSilent(1, 90_000)).toBe(false);
});

/** Sends ten messages whose first attempts fail. */
async function outage(id: string): Promise<void> {
  stage.sink.answersBy(() => 500);
  for (let n = 0; n < 10; n += 1) await messaging.send({ n });
  await messaging.settle();
  expect((await messaging.read(id)).health).toMatchObject({
    breaker: "open",
    consecutive_failures: 10,
  });
  stage.sink.take();
}

test("an endpoint that is down is only probed; after its recovery all deliveries arrive in order, none twice", async () => {
  const id = await messaging.endpoint("/a", { max_concurrency: 1 });
  stage.sink.answersBy(() => 503);
  const ids: string[] = [];
  const attemptsAt: number[] = [];
  stage.sink.answersBy(() => {
    attemptsAt.push(stage.server.clock.now());
    return 503;
  });
  const start = stage.server.clock.now();
  for (let n = 0; n < 600; n += 1) {
    ids.push((await messaging.send({ n }, { message_id: `m-${n}-${start}` }))[id] ?? "");
    await advance(1_000);
  }
  stage.sink.answersBy(() => 200);
  const opened = attemptsAt[9] ?? 0;
  const probes = attemptsAt.filter((at) => at > opened + 1_000);
  // 30 s, 1, 2, 4 and 8 minutes apart, each by 10 % at most.
  expect(probes.length).toBeGreaterThanOrEqual(3);
  expect(probes.length).toBeLessThanOrEqual(5);
  stage.sink.take();
  await advance(16 * MINUTE);
  const arrived = stage.sink.take();
  const numbers = arrived.map(({ body }) => (JSON.parse(body) as { data: { n: number } }).data.n);
  const [probed = -1, ...rest] = numbers;
  expect(rest).toEqual(Array.from({ length: 600 }, (_, n) => n).filter((n) => n !== probed));
  expect(probed).toBe(0);
  expect(new Set(arrived.map(({ headers }) => headers.get("webhook-id"))).size).toBe(600);
  for (const relayId of [ids[0], ids[9], ids[599]])
    expect((await stage.read(relayId ?? "")).status).toBe("delivered");
  expect(await messaging.read(id)).toMatchObject({
    health: {
      breaker: "closed",
      consecutive_failures: 0,
      failing_since: null,
      next_probe_at: null,
    },
    counts: { waiting: 0 },
  });
}, 60_000);

test("parked deliveries use no retry, only the probe does", async () => {
  const id = await messaging.endpoint("/a", { retry_schedule: ["1s", "1s"] });
  await outage(id);
  const late = (await messaging.send({ n: 99 }))[id] ?? "";
  await advance(10 * MINUTE);
  expect(await stage.read(late)).toMatchObject({
    status: "scheduled",
    attempts: 0,
  });
  expect((await messaging.read(id)).health["next_probe_at"]).toBeNumber();
  stage.sink.answersBy(() => 200);
  await advance(15 * MINUTE);
  expect(await stage.read(late)).toMatchObject({
    status: "delivered",
    attempts: 1,
  });
});

test("an open breaker and its probe survive a restart", async () => {
  const id = await messaging.endpoint("/a");
  await outage(id);
  await stage.restart();
  expect((await messaging.read(id)).health).toMatchObject({
    breaker: "open",
    consecutive_failures: 10,
  });
  stage.sink.answersBy(() => 200);
  await advance(MINUTE);
  await messaging.settle();
  expect(stage.sink.take()).toHaveLength(10);
  expect((await messaging.read(id)).health["breaker"]).toBe("closed");
});

test("a cancelled probe is replaced by the next delivery; without one, the next due delivery is the probe", async () => {
  const id = await messaging.endpoint("/a", { retry_schedule: [] });
  await outage(id);
  await advance(5 * MINUTE);
  const waiting = (await messaging.send({ n: 1 }))[id] ?? "";
  expect(stage.sink.take()).toEqual([]);
  await messaging.settle();
  expect(stage.sink.take()).toHaveLength(1);
  expect((await stage.read(waiting)).status).toBe("failed");
  const [first, second] = [await messaging.send({ n: 2 }), await messaging.send({ n: 3 })];
  await stage.account.delete(`/v1/relay/${first[id]}`);
  stage.sink.answersBy(() => 200);
  await advance(15 * MINUTE);
  expect(stage.sink.take()).toHaveLength(1);
  expect((await stage.read(second[id] ?? "")).status).toBe("delivered");
});

test("enabling the endpoint closes the breaker immediately and sends parked deliveries", async () => {
  const id = await messaging.endpoint("/a");
  await outage(id);
  await advance(10_000);
  stage.sink.answersBy(() => 200);
  await messaging.patch(id, { state: "live" });
  await messaging.settle();
  expect(stage.sink.take()).toHaveLength(10);
  expect((await messaging.read(id)).health).toMatchObject({
    breaker: "closed",
    consecutive_failures: 0,
  });
});

describe("an endpoint is disabled", () => {
  test("by a 410: pending deliveries fail and can be resent when it is enabled; new messages omit it", async () => {
    const id = await messaging.endpoint("/a", { max_concurrency: 1 });
    const later = (await messaging.send({ n: 1 }, { delay: "1h" }))[id] ?? "";
    stage.sink.answersBy(() => 410);
    const gone = (await messaging.send({ n: 2 }))[id] ?? "";
    await messaging.settle();
    expect(await messaging.read(id)).toMatchObject({
      state: "disabled",
      health: { disabled_reason: "the target responded with 410", breaker: "closed" },
    });
    expect(await stage.read(gone)).toMatchObject({
      status: "failed",
      response_status: 410,
      attempts: 1,
    });
    expect(await stage.read(later)).toMatchObject({
      status: "failed",
      error: "endpoint disabled",
      attempts: 0,
    });
    expect(await stage.listed("error=disabled")).toEqual([later]);
    expect(await messaging.send({ n: 3 })).toEqual({});
    expectError(await stage.account.post(`/v1/relay/${later}/resend`), "conflict");
    await messaging.patch(id, { state: "live" });
    stage.sink.answersBy(() => 200);
    expect((await stage.account.post(`/v1/relay/${later}/resend`)).status).toBe(202);
    await messaging.settle();
    expect((await stage.read(later)).status).toBe("delivered");
  });

  test("and enabled again before all pending deliveries are ended: the others are sent", async () => {
    const id = await messaging.endpoint("/a", { retry_schedule: ["1s"] });
    const batch = (delay: string) => {
      const messages = Array.from({ length: 100 }, () => ({
        event_type: "a",
        payload: { n: 1 },
        delay,
      }));
      return stage.account.post("/v1/relay/messages/batch", { messages });
    };
    // Many, so that ending them takes a while after the endpoint is disabled.
    for (let count = 0; count < 20; count += 1) await batch("1h");
    await outage(id);
    for (let count = 0; count < 2; count += 1) await batch("0s");
    await messaging.settle();
    stage.sink.answersBy(() => 410);
    const probed = advance(MINUTE);
    while ((await messaging.read(id)).state !== "disabled") await Bun.sleep(0);
    stage.sink.answersBy(() => 200);
    await messaging.patch(id, { state: "live" });
    await probed;
    await advance(2 * HOUR);
    const { counts } = await messaging.read(id);
    expect(counts).toMatchObject({ waiting: 0 });
    // Some deliveries were ended; the slices continue for a while after the endpoint is disabled.
    expect(counts["delivered_24h"]).toBeGreaterThan(0);
  });

  test("after 120 hours of continuous failure", async () => {
    const id = await messaging.endpoint("/a", { retry_schedule: [] });
    stage.sink.answersBy(() => 500);
    const states: unknown[] = [];
    for (let day = 0; day < 6; day += 1) {
      await messaging.send({ n: day });
      await messaging.settle();
      states.push((await messaging.read(id)).state);
      await advance(24 * HOUR);
    }
    expect(states).toEqual(["live", "live", "live", "live", "live", "disabled"]);
  });

  test("not when an attempt succeeds in the meantime", async () => {
    const id = await messaging.endpoint("/a", { retry_schedule: [] });
    for (let day = 0; day < 8; day += 1) {
      stage.sink.answersBy(() => (day === 4 ? 204 : 500));
      await messaging.send({ n: day });
      await messaging.settle();
      await advance(24 * HOUR);
    }
    expect((await messaging.read(id)).state).toBe("live");
  });
});

describe("notices", () => {
  const TOLD = ["ninefold.*"];
  const notices = () =>
    stage.sink
      .take()
      .filter(({ path }) => path === "/notices")
      .map(({ body }) => JSON.parse(body) as { type: string; data: Record<string, unknown> });

  test("about failure and recovery are sent to subscribers, and cost what messages cost", async () => {
    const id = await messaging.endpoint("/a", { name: "books" });
    await messaging.endpoint("/notices", { event_types: TOLD });
    stage.sink.answersBy(({ path }) => (path === "/a" ? 500 : 200));
    for (let n = 0; n < 10; n += 1) await messaging.send({ n });
    const before = (await stage.account.get("/v1/meter/balance")).body["balance"];
    await messaging.settle();
    const [failing, ...more] = notices();
    expect(more).toEqual([]);
    expect(failing).toMatchObject({
      type: "ninefold.endpoint.failing",
      data: {
        endpoint_id: id,
        name: "books",
        url: stage.sink.url("/a"),
        last_status: 500,
        last_error: "the target responded with 500",
        since: expect.any(Number),
        waiting: 10,
      },
    });
    stage.sink.answersBy(() => 200);
    await advance(MINUTE);
    await messaging.settle();
    expect(notices().map(({ type }) => type)).toEqual(["ninefold.endpoint.recovered"]);
    const { balance } = (await stage.account.get("/v1/meter/balance")).body;
    // Two notices, each 1 credit and 1 for its delivery.
    expect(Number(before) - Number(balance)).toBe(4);
  });

  test("about failed deliveries are sent once an hour with their number; one about a disabled endpoint as well", async () => {
    const id = await messaging.endpoint("/a", { retry_schedule: [] });
    await messaging.endpoint("/notices", {
      event_types: ["ninefold.delivery.failed", "ninefold.endpoint.disabled"],
    });
    stage.sink.answersBy(({ path }) => (path === "/a" ? 500 : 200));
    for (let n = 0; n < 3; n += 1) await messaging.send({ n });
    await messaging.settle();
    expect(notices().map(({ type, data }) => [type, data["count"]])).toEqual([
      ["ninefold.delivery.failed", 1],
    ]);
    await advance(HOUR);
    await messaging.send({ n: 3 });
    await messaging.settle();
    expect(notices().map(({ data }) => data["count"])).toEqual([3]);
    stage.sink.answersBy(({ path }) => (path === "/a" ? 410 : 200));
    await messaging.send({ n: 4 });
    await messaging.settle();
    // One notice a minute.
    expect(notices()).toEqual([]);
    await advance(NOTICE_INTERVAL_MS);
    expect(notices()).toMatchObject([
      {
        type: "ninefold.endpoint.disabled",
        data: { endpoint_id: id, reason: "the target responded with 410" },
      },
    ]);
  });

  test("are not sent to the endpoint that they are about, nor about notices", async () => {
    await messaging.endpoint("/a", {
      event_types: ["invoice.*", "ninefold.*"],
      retry_schedule: [],
    });
    await messaging.endpoint("/notices", {
      event_types: TOLD,
      retry_schedule: [],
    });
    stage.sink.answersBy(() => 500);
    for (let n = 0; n < 10; n += 1) await messaging.send({ n });
    await messaging.settle();
    await advance(MINUTE);
    const told = stage.sink
      .take()
      .map(({ path, body }) => [path, (JSON.parse(body) as { type: string }).type]);
    const own = told.filter(([, type]) => type?.startsWith("ninefold."));
    expect(own.length).toBeGreaterThan(0);
    expect(own.every(([path]) => path === "/notices")).toBe(true);
  });

  test("do not multiply when all endpoints fail and subscribe", async () => {
    for (let n = 0; n < NOTICE_SUBSCRIBERS_MAX; n += 1)
      await messaging.endpoint(`/${n}`, {
        event_types: ["invoice.*", ...TOLD],
        retry_schedule: [],
      });
    stage.sink.answersBy(() => 410);
    await messaging.send();
    await messaging.settle();
    await advance(HOUR);
    const own = stage.sink.take().filter(({ body }) => body.includes('"type":"ninefold.'));
    // One message was sent; each of its failures is about an endpoint, and the last ones have no subscriber left.
    expect(own.length).toBeLessThanOrEqual(NOTICE_SUBSCRIBERS_MAX * NOTICE_SUBSCRIBERS_MAX);
    const { messages } = (await stage.account.get("/v1/relay/messages?limit=100")).body;
    expect((messages as unknown[]).length).toBeLessThanOrEqual(1 + NOTICES_DELAYED_MAX + 1);
  });

  test("are not sent without credits, nor to an endpoint with an open breaker", async () => {
    stage.account = await stage.server.account({ balance: 11 });
    await messaging.endpoint("/a", { retry_schedule: [] });
    await messaging.endpoint("/notices", { event_types: TOLD });
    stage.sink.answersBy(({ path }) => (path === "/a" ? 500 : 200));
    const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);
    while ((await balance()) > 1)
      await stage.account.post("/v1/relay/messages", {
        event_type: "x",
        payload: {},
      });
    await messaging.settle();
    expect(notices()).toEqual([]);
    expect(await balance()).toBeLessThanOrEqual(1);
    await stage.anew();
    await messaging.endpoint("/a", { retry_schedule: [] });
    const down = await messaging.endpoint("/notices", {
      event_types: ["invoice.*", ...TOLD],
    });
    stage.sink.answersBy(() => 500);
    for (let n = 0; n < 10; n += 1) await messaging.send({ n }, { event_type: "invoice.paid" });
    await messaging.settle();
    await advance(1_000);
    expect((await messaging.read(down)).health["breaker"]).toBe("open");
    stage.sink.take();
    await messaging.endpoint("/gone", { event_types: ["x"] });
    stage.sink.answersBy(({ path }) => (path === "/gone" ? 410 : 200));
    const before = ((await messaging.read(down)).counts as { waiting: number }).waiting;
    await messaging.send({ n: 1 }, { event_type: "x" });
    await messaging.settle();
    expect(((await messaging.read(down)).counts as { waiting: number }).waiting).toBe(before);
  });

  test("are sent to a limited number of endpoints of a project", async () => {
    for (let n = 0; n < NOTICE_SUBSCRIBERS_MAX; n += 1)
      await messaging.endpoint(`/${n}`, { event_types: TOLD });
    const url = stage.sink.url("/more");
    const more = { url, event_types: ["ninefold.endpoint.failing"] };
    expectError(await stage.account.post("/v1/relay/endpoints", more), "validation_error");
    const id = await messaging.endpoint("/plain");
    const change = { event_types: ["a", ...TOLD] };
    expectError(await stage.account.patch(`/v1/relay/endpoints/${id}`, change), "validation_error");
    const [subscriber] = (await stage.account.get("/v1/relay/endpoints")).body["endpoints"] as {
      endpoint_id: string;
    }[];
    expect(subscriber?.endpoint_id).toBe(id);
  });
});

test("a rate holds deliveries back without using attempts", async () => {
  const id = await messaging.endpoint("/a", {
    max_per_second: 5,
    max_concurrency: 1,
  });
  const sent: string[] = [];
  for (let n = 0; n < 12; n += 1) sent.push((await messaging.send({ n }))[id] ?? "");
  await messaging.settle();
  expect(stage.sink.received).toHaveLength(5);
  await advance(1_000);
  expect(stage.sink.received.length).toBeGreaterThanOrEqual(9);
  expect(stage.sink.received.length).toBeLessThanOrEqual(11);
  await advance(1_000);
  expect(messaging.takenNumbers()).toEqual(Array.from({ length: 12 }, (_, n) => n));
  expect(await stage.read(sent[11] ?? "")).toMatchObject({
    status: "delivered",
    attempts: 1,
  });
});
