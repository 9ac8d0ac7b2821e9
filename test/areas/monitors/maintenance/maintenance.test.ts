import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  DURATION_MS_MAX,
  DURATION_MS_MIN,
  MESSAGE_LENGTH_MAX,
  MONITORS_MAX,
} from "../../../../src/areas/monitors/maintenance/schema.ts";
import { isoTime } from "../../../../src/kernel/time/date-time.ts";
import { AllEvents } from "../../../support/all-events.ts";
import type { Answer } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { AccountClient, startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const PATH = "/v1/pulse/maintenance";

let server: TestServer;
let account: AccountClient;
let site: WebhookSink;
let hooks: WebhookSink;
let channel: AllEvents;
beforeEach(async () => {
  site = new WebhookSink();
  hooks = new WebhookSink();
  channel = new AllEvents();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
  await channel.open(account);
});
afterEach(async () => {
  await server.stop();
  site.stop();
  hooks.stop();
  channel.stop();
});

async function restart(): Promise<void> {
  await server.restart();
  account = new AccountClient(server.url, account.key ?? "", account.userId, account.email);
}

async function watch(change: object = {}): Promise<string> {
  const alerts = { webhook_url: hooks.url(), notify_recovery: true };
  const answer = await account.post("/v1/pulse", { url: site.url(), interval: 15_000, ...alerts, ...change });
  return String(answer.body["id"]);
}

const told = (): string[] => hooks.take().map(({ body }) => JSON.parse(body).event);
const at = (ms: number): string => isoTime(TEST_START_MS + ms);
const once = (from: number, to: number) => ({ title: "Move", starts_at: at(from), ends_at: at(to) });

async function plan(body: object): Promise<Answer["body"]> {
  const answer = await account.post(PATH, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

async function monitor(id: string) {
  return (await account.get(`/v1/pulse/${id}`)).body;
}

async function historyOf(id: string) {
  const { body } = await account.get(`/v1/pulse/${id}/history?limit=100`);
  return body as unknown as {
    checks: { status: string; maintenance: boolean; checked_at: number }[];
    uptime: Record<string, number | null>;
  };
}

describe("during maintenance", () => {
  test("checks continue and are marked; status and uptime stay; a target that is down at the end is reported", async () => {
    const id = await watch({ name: "Shop" });
    await server.clock.advance(MINUTE);
    await plan({ ...once(2 * MINUTE, 12 * MINUTE), monitor_ids: [id] });
    expect(channel.take()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(channel.takeBodies()).toMatchObject([
      {
        event: "maintenance.started",
        title: "Move",
        message: "",
        starts_at: at(2 * MINUTE),
        ends_at: at(12 * MINUTE),
      },
    ]);
    expect(await monitor(id)).toMatchObject({ status: "up", maintenance: true });
    site.answers(500);
    await server.clock.advance(8 * MINUTE);
    expect(told()).toEqual([]);
    expect(channel.take()).toEqual([]);
    expect((await account.get("/v1/pulse/incidents")).body["incidents"]).toEqual([]);
    expect(await monitor(id)).toMatchObject({ status: "up", maintenance: true });
    const { checks, uptime } = await historyOf(id);
    expect(uptime["24h"]).toBe(100);
    const inside = checks.filter(({ checked_at }) => checked_at * 1_000 >= TEST_START_MS + 2 * MINUTE);
    expect(inside.length).toBeGreaterThan(30);
    expect(inside.every(({ maintenance }) => maintenance)).toBe(true);
    expect(checks.filter(({ status }) => status === "down").length).toBeGreaterThan(30);
    expect(checks.slice(inside.length).some(({ maintenance }) => maintenance)).toBe(false);
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["monitor.down"]);
    expect(channel.take()).toEqual(["Move maintenance.ended", "Shop monitor.down"]);
    expect(await monitor(id)).toMatchObject({ status: "down", maintenance: false });
    await server.clock.advance(MINUTE);
    expect((await historyOf(id)).uptime["24h"]).toBeLessThan(100);
  });

  test("recovery is reported at the end only if the outage had been reported", async () => {
    const [fine, broken] = [
      await watch(),
      await watch({ url: site.url("/broken"), consecutive_threshold: 3 }),
    ];
    site.answersBy(({ path }) => (path === "/broken" ? 500 : 200));
    await server.clock.advance(2 * MINUTE);
    expect(told()).toEqual(["monitor.down"]);
    await plan({ ...once(0, 12 * MINUTE), monitor_ids: [fine, broken] });
    site.answersBy(({ path }) => (path === "/broken" ? 200 : 500));
    await server.clock.advance(5 * MINUTE);
    site.answers(200);
    await server.clock.advance(4 * MINUTE);
    expect([await monitor(fine), await monitor(broken)]).toMatchObject([
      { status: "up" },
      { status: "down" },
    ]);
    expect(told()).toEqual([]);
    await server.clock.advance(2 * MINUTE);
    expect(told()).toEqual(["monitor.up"]);
    expect([await monitor(fine), await monitor(broken)]).toMatchObject([{ status: "up" }, { status: "up" }]);
  });

  test("a manual check changes no status", async () => {
    const id = await watch();
    await server.clock.advance(MINUTE);
    await plan({ ...once(0, HOUR), monitor_ids: [id] });
    site.answers(500);
    expect((await account.post(`/v1/pulse/${id}/check`)).body).toMatchObject({ status: "up" });
    expect((await historyOf(id)).checks[0]).toMatchObject({ maintenance: true, status: "down" });
  });

  test("other monitors alert as usual; an announcement affects none", async () => {
    const [inside, outside] = [await watch(), await watch()];
    await server.clock.advance(MINUTE);
    await plan({ ...once(0, HOUR), monitor_ids: [inside] });
    await plan({ ...once(0, HOUR), monitor_ids: [] });
    site.answers(500);
    await server.clock.advance(MINUTE);
    expect(told()).toEqual(["monitor.down"]);
    expect(await monitor(outside)).toMatchObject({ status: "down", maintenance: false });
  });

  for (const [how, end] of [
    ["is deleted", (id: string) => account.delete(`${PATH}/${id}`)],
    ["is moved", (id: string) => account.patch(`${PATH}/${id}`, { ends_at: at(2 * MINUTE) })],
    ["no longer has the monitor", (id: string) => account.patch(`${PATH}/${id}`, { monitor_ids: [] })],
  ] as const) {
    test(`ends when it ${how}, and a target that is down is reported`, async () => {
      const id = await watch({ interval: 300_000 });
      await server.clock.advance(MINUTE);
      const { id: work } = await plan({ ...once(0, 10 * HOUR), monitor_ids: [id] });
      site.answers(500);
      await server.clock.advance(30 * MINUTE);
      expect(told()).toEqual([]);
      expect((await end(String(work))).status).toBe(200);
      await server.clock.advance(SECOND);
      expect(told()).toEqual(["monitor.down"]);
    });
  }

  test("continues after a restart, and ends if the window ended meanwhile", async () => {
    const id = await watch();
    await server.clock.advance(MINUTE);
    const { id: work } = await plan({ ...once(2 * MINUTE, 10 * MINUTE), monitor_ids: [id] });
    site.answers(500);
    await server.clock.advance(2 * MINUTE);
    told();
    await server.halt();
    await server.clock.advance(MINUTE);
    await restart();
    await server.clock.advance(2 * MINUTE);
    expect(told()).toEqual([]);
    await server.halt();
    await server.clock.advance(HOUR);
    await restart();
    await server.clock.advance(SECOND);
    expect(told()).toEqual(["monitor.down"]);
    expect((await account.get(`${PATH}/${work}`)).body).toMatchObject({ status: "ended" });
  });
});

describe("maintenance", () => {
  test("recurs by its schedule in its time zone", async () => {
    await server.stop();
    // The clocks of Berlin go forward on 29 March 2026 at 2:00, so 2:30 is moved to the end of the skipped hour.
    server = await startTestServer({ manualClock: { startMs: Date.UTC(2026, 2, 27, 22) } });
    account = await server.account();
    const id = await watch({ url: "https://example.com/", webhook_url: undefined });
    // Another test covers its checks.
    await account.put(`/v1/pulse/${id}`, { active: false });
    const body = { title: "Night", schedule: "30 2 * * *", tz: "Europe/Berlin", duration_ms: HOUR };
    const made = await plan({ ...body, monitor_ids: [id] });
    expect(made).toMatchObject({
      ...body,
      status: "scheduled",
      monitor_ids: [id],
      public: false,
      message: "",
      starts_at: "2026-03-28T01:30:00.000Z",
      ends_at: "2026-03-28T02:30:00.000Z",
    });
    await server.clock.advance(4 * HOUR);
    expect(await monitor(id)).toMatchObject({ maintenance: true });
    await server.clock.advance(HOUR);
    expect(await monitor(id)).toMatchObject({ maintenance: false });
    const next = async () => (await account.get(`${PATH}/${made["id"]}`)).body;
    expect(await next()).toMatchObject({ status: "scheduled", starts_at: "2026-03-29T01:00:00.000Z" });
    await server.clock.advance(24 * HOUR);
    expect(await next()).toMatchObject({ status: "scheduled", starts_at: "2026-03-30T00:30:00.000Z" });
    const moved = await account.patch(`${PATH}/${made["id"]}`, { schedule: "0 12 * * *", tz: "UTC" });
    expect(moved.body).toMatchObject({ starts_at: "2026-03-29T12:00:00.000Z" });
  });

  test("starts immediately if its window is open", async () => {
    const id = await watch();
    const made = await plan({ title: "Now", schedule: "0 * * * *", duration_ms: HOUR, monitor_ids: [id] });
    expect(made).toMatchObject({ status: "active", starts_at: at(0), ends_at: at(HOUR), tz: "UTC" });
    expect(await monitor(id)).toMatchObject({ maintenance: true });
  });

  test("is listed by status, which a change of its times changes", async () => {
    const first = await plan(once(-HOUR, HOUR));
    const second = await plan({ ...once(HOUR, 2 * HOUR), message: "soon", public: true });
    const list = async (status: string) => {
      const { body } = await account.get(`${PATH}?status=${status}`);
      return (body["maintenance"] as { id: string }[]).map(({ id }) => id);
    };
    expect(await list("active")).toEqual([String(first["id"])]);
    expect(await list("scheduled")).toEqual([String(second["id"])]);
    expect(await list("ended")).toEqual([]);
    const changed = await account.patch(`${PATH}/${first["id"]}`, { title: "Other", ends_at: at(MINUTE) });
    expect(changed.body).toEqual({ ...first, title: "Other", ends_at: at(MINUTE) });
    await server.clock.advance(MINUTE);
    expect(await list("ended")).toEqual([String(first["id"])]);
    expect((await account.get(`${PATH}?status=scheduled&limit=1`)).body).toEqual({ maintenance: [second] });
  });

  test("is removed from deleted monitors and deleted with its project", async () => {
    const id = await watch();
    const made = await plan({ ...once(0, HOUR), monitor_ids: [id, id] });
    expect(made["monitor_ids"]).toEqual([id]);
    await account.delete(`/v1/pulse/${id}`);
    expect((await account.get(`${PATH}/${made["id"]}`)).body).toMatchObject({ monitor_ids: [] });
    const { body: project } = await account.post("/v1/projects", { name: "Short-lived" });
    const terms = { prefix: "sm", name: "all", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project["id"]}/keys`, terms);
    const inside = server.client(String(key.body["secret"]));
    expect((await inside.post(PATH, once(0, HOUR))).status).toBe(201);
    await account.delete(`/v1/projects/${project["id"]}`);
    await server.clock.advance(2 * HOUR);
    const { db } = server.server.kernel;
    expect(db.one("SELECT count(*) AS rows FROM monitor_maintenance")()).toEqual({ rows: 1 });
    expect(db.one("SELECT count(*) AS rows FROM jobs WHERE kind = 'monitors.maintenance'")()).toEqual({
      rows: 0,
    });
  });
});

describe("rejected bodies", () => {
  const recurring = { title: "Night", schedule: "0 2 * * *", duration_ms: HOUR };
  const cases: readonly (readonly [name: string, body: object, field: string])[] = [
    ["no title", { ...once(0, HOUR), title: undefined }, "title"],
    ["a title of two lines", { ...once(0, HOUR), title: "a\nb" }, "title"],
    ["a long message", { ...once(0, HOUR), message: "a".repeat(MESSAGE_LENGTH_MAX + 1) }, "message"],
    ["no times", { title: "Move" }, "starts_at"],
    ["no end", { title: "Move", starts_at: at(0) }, "ends_at"],
    ["no moment", { ...once(0, HOUR), starts_at: "tomorrow" }, "starts_at"],
    ["an end before the start", once(HOUR, HOUR), "ends_at"],
    ["an end in the past", once(-HOUR, 0), "ends_at"],
    ["a foreign monitor", { ...once(0, HOUR), monitor_ids: [crypto.randomUUID()] }, "monitor_ids.0"],
    ["no id", { ...once(0, HOUR), monitor_ids: ["shop"] }, "monitor_ids.0"],
    ["many monitors", { ...once(0, HOUR), monitor_ids: Array(MONITORS_MAX + 1).fill("a") }, "monitor_ids"],
    ["a duration without schedule", { ...once(0, HOUR), duration_ms: HOUR }, "duration_ms"],
    ["a zone without schedule", { ...once(0, HOUR), tz: "UTC" }, "tz"],
    ["no duration", { ...recurring, duration_ms: undefined }, "duration_ms"],
    ["a short duration", { ...recurring, duration_ms: DURATION_MS_MIN - 1 }, "duration_ms"],
    ["a long duration", { ...recurring, duration_ms: DURATION_MS_MAX + 1 }, "duration_ms"],
    ["no schedule", { ...recurring, schedule: "at night" }, "schedule"],
    ["a schedule that never comes", { ...recurring, schedule: "0 0 30 2 *" }, "schedule"],
    ["no zone", { ...recurring, tz: "Mars/Olympus" }, "tz"],
    ["both kinds", { ...recurring, starts_at: at(0) }, "starts_at"],
  ];
  for (const [name, body, field] of cases) {
    test(name, async () => {
      const { error } = expectError(await account.post(PATH, body), "validation_error");
      expect(error.message).toContain(field);
    });
  }

  test("values at their limits are accepted", async () => {
    await plan({ ...once(0, HOUR), message: "a".repeat(MESSAGE_LENGTH_MAX) });
    await plan({ ...recurring, duration_ms: DURATION_MS_MIN });
    await plan({ ...recurring, duration_ms: DURATION_MS_MAX });
    const ids = Array(MONITORS_MAX).fill(await watch());
    await plan({ ...once(0, HOUR), monitor_ids: ids });
  });

  test("a single window cannot become recurring, or the reverse", async () => {
    const { id: one } = await plan(once(0, HOUR));
    const { id: many } = await plan(recurring);
    const patched = (id: unknown, body: object) => account.patch(`${PATH}/${id}`, body);
    expectError(await patched(one, { schedule: "0 2 * * *" }), "validation_error");
    expectError(await patched(many, { ends_at: at(HOUR) }), "validation_error");
    expectError(await patched(one, { ends_at: at(-HOUR) }), "validation_error");
    expect((await patched(one, {})).status).toBe(200);
  });
});
