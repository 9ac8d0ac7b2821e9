import { afterEach, describe, expect, test } from "bun:test";
import { MISSED_AFTER_MS } from "../../../../src/areas/relay/schedules/runs.ts";
import { expectError } from "../../../support/errors.ts";
import { relayStage } from "../support.ts";

const SCHEDULES = "/v1/relay/schedules";
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const stage = relayStage();
afterEach(async () => {
  for (;;) {
    const { schedules } = (await stage.account.get(`${SCHEDULES}?limit=100`)).body as {
      schedules: Schedule[];
    };
    if (schedules.length === 0) break;
    for (const { schedule_id } of schedules) await stage.account.delete(`${SCHEDULES}/${schedule_id}`);
  }
  // Started attempts finish.
  await advance(HOUR);
});

interface Schedule {
  readonly schedule_id: string;
  readonly next_run_at: number | null;
  readonly last_relay_id: string | null;
  readonly runs: number;
  readonly skipped: number;
  readonly [field: string]: unknown;
}

const now = () => stage.server.clock.now();
const advance = (ms: number) => stage.server.clock.advance(ms);
const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

/** Advances to the start of an hour, so that all tests start in the same way. */
async function toTheHour(): Promise<void> {
  await advance(HOUR - (now() % HOUR));
}

async function create(change: object = {}): Promise<Schedule> {
  const body = { cron: "* * * * *", target_url: stage.sink.url("/cron"), payload: { n: 1 } };
  const answer = await stage.account.post(SCHEDULES, { ...body, ...change });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as unknown as Schedule;
}

async function read({ schedule_id }: Pick<Schedule, "schedule_id">): Promise<Schedule> {
  return (await stage.account.get(`${SCHEDULES}/${schedule_id}`)).body as unknown as Schedule;
}

/** Times of the schedule in received requests. */
function dueTimes(): number[] {
  return stage.sink.take().map(({ headers }) => Number(headers.get("x-ninefold-scheduled-at")));
}

describe("a run", () => {
  test("sends a delivery at its time, for 1 credit", async () => {
    await toTheHour();
    const start = now();
    const before = await balance();
    const headers = { "X-Shop": "42", "X-Ninefold-Scheduled-At": "mine", "webhook-id": "mine" };
    const schedule = await create({ headers });
    await advance(3 * MINUTE);
    const received = stage.sink.take();
    expect(received.map((one) => [one.method, one.path, one.body])).toEqual(
      Array(3).fill(["POST", "/cron", '{"n":1}']),
    );
    const times = [1, 2, 3].map((minutes) => start + minutes * MINUTE);
    expect(received.map((one) => Number(one.headers.get("x-ninefold-scheduled-at")))).toEqual(times);
    expect(received.map((one) => one.headers.get("x-shop"))).toEqual(["42", "42", "42"]);
    expect(await balance()).toBe(before - 3);
    const after = await read(schedule);
    const last = received.at(-1)?.headers.get("webhook-id");
    expect(after).toMatchObject({ runs: 3, skipped: 0, last_run_at: times[2], last_relay_id: last });
    expect(after.next_run_at).toBe(start + 4 * MINUTE);
    expect(await stage.read(String(last))).toMatchObject({
      kind: "scheduled",
      schedule_id: schedule.schedule_id,
      scheduled_for: times[2],
    });
  });

  test("is listed by its schedule", async () => {
    const [first, second] = [await create(), await create()];
    await advance(2 * MINUTE);
    await stage.sent();
    const ids = await stage.listed(`schedule_id=${first.schedule_id}`);
    expect(ids).toHaveLength(2);
    expect(await stage.listed(`schedule_id=${second.schedule_id}&status=delivered`)).toHaveLength(2);
    expect(await stage.listed("schedule_id=sch_none")).toEqual([]);
    expect(ids[0]).toBe((await read(first)).last_relay_id ?? "");
    expect(await stage.listed("limit=10")).toHaveLength(5);
    const long = await stage.account.get(`/v1/relay?schedule_id=${"x".repeat(65)}`);
    expectError(long, "validation_error");
  });

  test("sends no body with GET, and is retried by its schedule", async () => {
    stage.sink.answersBy(() => 500);
    const schedule = await create({ method: "GET", cron: "@hourly", retry_schedule: ["10s"] });
    await toTheHour();
    await advance(MINUTE);
    expect(stage.sink.take().map(({ method, body }) => [method, body])).toEqual([
      ["GET", ""],
      ["GET", ""],
    ]);
    const relayId = (await read(schedule)).last_relay_id;
    expect(await stage.read(String(relayId))).toMatchObject({ status: "failed", retry_schedule: ["10s"] });
    // A resend has the original time as well.
    stage.sink.answersBy(() => 200);
    await stage.account.post(`/v1/relay/${relayId}/resend`);
    await advance(0);
    expect(dueTimes()).toEqual([now() - (now() % HOUR)]);
  });

  test("is sent from starts_at to ends_at, and never afterwards", async () => {
    await toTheHour();
    const [starts_at, ends_at] = [now() + 2 * MINUTE, now() + 4 * MINUTE];
    const schedule = await create({ starts_at, ends_at });
    await advance(HOUR);
    expect(dueTimes()).toEqual([starts_at, starts_at + MINUTE, ends_at]);
    expect(await read(schedule)).toMatchObject({ next_run_at: null, next_runs: [], runs: 3, state: "live" });
    // It can still be renamed, and continues with a later end.
    const path = `${SCHEDULES}/${schedule.schedule_id}`;
    expect((await stage.account.patch(path, { name: "over" })).status).toBe(200);
    await stage.account.patch(path, { ends_at: now() + MINUTE });
    await advance(HOUR);
    expect(dueTimes()).toHaveLength(1);
  });

  test("is not sent while paused, after a change, or after deletion", async () => {
    await toTheHour();
    const schedule = await create();
    const path = `${SCHEDULES}/${schedule.schedule_id}`;
    await stage.account.patch(path, { state: "paused" });
    await advance(5 * MINUTE);
    expect(dueTimes()).toEqual([]);
    await stage.account.patch(path, { state: "live", cron: "*/10 * * * *" });
    await advance(4 * MINUTE);
    expect(dueTimes()).toEqual([]);
    await advance(MINUTE);
    expect(dueTimes()).toHaveLength(1);
    await stage.account.delete(path);
    await advance(HOUR);
    expect(dueTimes()).toEqual([]);
    expect(
      stage.server.server.kernel.db.number(
        "SELECT count(*) AS n FROM jobs WHERE kind = 'relay.schedules' AND key NOT IN (SELECT ref FROM relay_schedules)",
      )(),
    ).toBe(0);
  });

  test("can be started manually, in addition to its times, also while paused", async () => {
    await toTheHour();
    const schedule = await create({ cron: "@daily", state: "paused" });
    const path = `${SCHEDULES}/${schedule.schedule_id}`;
    const before = await balance();
    const answer = await stage.account.post(`${path}/run`);
    expect(answer.status).toBe(201);
    await advance(0);
    expect(dueTimes()).toEqual([now()]);
    const after = await read(schedule);
    expect(after).toMatchObject({ runs: 1, last_relay_id: answer.body["relay_id"], next_run_at: null });
    expect(await balance()).toBe(before - 1);
    const live = (await stage.account.patch(path, { state: "live" })).body;
    await stage.account.post(`${path}/run`);
    expect(await read(schedule)).toMatchObject({ runs: 2, next_run_at: live["next_run_at"] });
  });
});

describe("a run is skipped", () => {
  test("without credits, and while the account is suspended; the next one is sent", async () => {
    await toTheHour();
    stage.account = await stage.server.account({ tier: "scale", balance: 1 });
    const schedule = await create();
    await advance(2 * MINUTE);
    expect(dueTimes()).toHaveLength(1);
    expect(await read(schedule)).toMatchObject({ runs: 1, skipped: 1 });
    const own = `/v1/admin/accounts/${stage.account.userId}`;
    await stage.server.operator.post(`${own}/credits`, { amount: 100 });
    await stage.server.operator.patch(own, { suspended: true });
    await advance(MINUTE);
    expect(dueTimes()).toEqual([]);
    await stage.server.operator.patch(own, { suspended: false });
    expect(await read(schedule)).toMatchObject({ runs: 1, skipped: 2 });
  });

  test("with overlap skip while the previous run is not finished; not with allow", async () => {
    await toTheHour();
    stage.sink.answersBy(() => 500);
    const waits = { retry_schedule: ["150s"] };
    const [careful, plain] = [await create({ overlap: "skip", ...waits }), await create(waits)];
    await advance(3 * MINUTE);
    expect(await read(careful)).toMatchObject({ runs: 1, skipped: 2 });
    expect(await read(plain)).toMatchObject({ runs: 3, skipped: 0 });
    // The only retry fails after two and a half minutes; then it is finished.
    await advance(MINUTE + MINUTE);
    expect(await read(careful)).toMatchObject({ runs: 2, skipped: 3 });
  });
});

describe("times that pass while the server is down", () => {
  /** Stops the server, and starts it again after a time. */
  async function downFor(ms: number): Promise<void> {
    await stage.server.halt();
    await advance(ms);
    await stage.restart();
    await advance(0);
  }

  test("lead to one run with once, and to none with skip; then the next run follows", async () => {
    await toTheHour();
    const start = now();
    const [once, skip] = [
      await create({ target_url: stage.sink.url("/once") }),
      await create({ missed: "skip" }),
    ];
    await downFor(10 * MINUTE + 30_000);
    const received = stage.sink.take();
    expect(received.map(({ path }) => path)).toEqual(["/once"]);
    expect(received[0]?.headers.get("x-ninefold-scheduled-at")).toBe(String(start + MINUTE));
    const next_run_at = start + 11 * MINUTE;
    expect(await read(once)).toMatchObject({ runs: 1, skipped: 0, next_run_at });
    expect(await read(skip)).toMatchObject({ runs: 0, skipped: 1, next_run_at });
    await advance(30_000);
    expect(dueTimes()).toEqual([next_run_at, next_run_at]);
  });

  test("are missed after more than a minute", async () => {
    for (const [late, runs] of [
      [MISSED_AFTER_MS, 1],
      [MISSED_AFTER_MS + 1, 0],
    ] as const) {
      await toTheHour();
      const schedule = await create({ cron: "30 * * * *", missed: "skip" });
      await downFor(30 * MINUTE + late);
      expect(await read(schedule)).toMatchObject({ runs, skipped: 1 - runs });
    }
  });

  test("lead to a last run when ends_at has passed", async () => {
    await toTheHour();
    const schedule = await create({ ends_at: now() + 2 * MINUTE });
    await downFor(HOUR);
    expect(await read(schedule)).toMatchObject({ runs: 1, next_run_at: null });
    await advance(HOUR);
    expect(dueTimes()).toHaveLength(1);
  });
});

test("many schedules at one time run once each, also over a restart", async () => {
  await toTheHour();
  stage.account = await stage.server.account({ tier: "unlimited" });
  const count = 300;
  for (let number = 0; number < count; number += 1)
    await create({ cron: "30 * * * *", target_url: stage.sink.url(`/${number}`), payload: {} });
  const each = Array.from({ length: count }, (_, number) => `/${number}`).sort();
  await advance(HOUR);
  expect(
    stage.sink
      .take()
      .map(({ path }) => path)
      .sort(),
  ).toEqual(each);
  await stage.restart();
  await advance(0);
  expect(stage.sink.take()).toEqual([]);
  await advance(HOUR);
  expect(
    stage.sink
      .take()
      .map(({ path }) => path)
      .sort(),
  ).toEqual(each);
}, 60_000);

test("a job that is early because the clock was set back waits for its time", async () => {
  await toTheHour();
  const schedule = await create({ cron: "30 * * * *" });
  const { kernel } = stage.server.server;
  await kernel.writer.submit((tx) => {
    const key = String(kernel.db.number("SELECT max(ref) AS n FROM relay_schedules")());
    kernel.scheduler.enqueue(tx, "relay.schedules", key, now() + MINUTE, null);
  });
  await advance(29 * MINUTE);
  expect(stage.sink.take()).toEqual([]);
  expect(await read(schedule)).toMatchObject({ runs: 0, skipped: 0, next_run_at: now() + MINUTE });
  await advance(MINUTE);
  expect(dueTimes()).toEqual([now()]);
});

test("schedules of a deleted project do not run, and are deleted", async () => {
  const project = await stage.account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const key = await stage.account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const client = stage.server.client(String(key.body.secret));
  const body = { cron: "* * * * *", target_url: stage.sink.url("/gone") };
  expect((await client.post(SCHEDULES, body)).status).toBe(201);
  const { db } = stage.server.server.kernel;
  const [rows, jobs] = [
    db.number("SELECT count(*) AS n FROM relay_schedules"),
    db.number("SELECT count(*) AS n FROM jobs WHERE kind = 'relay.schedules'"),
  ];
  const before = [rows(), jobs()];
  await stage.account.delete(`/v1/projects/${project.body.id}`);
  await advance(2 * MINUTE);
  expect(stage.sink.take().filter(({ path }) => path === "/gone")).toEqual([]);
  expect([rows(), jobs()]).toEqual(before.map((count) => count - 1));
});
