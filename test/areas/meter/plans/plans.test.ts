import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { nextRefill } from "../../../../src/areas/meter/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MOST = Number.MAX_SAFE_INTEGER;

let server: TestServer;
let sink: WebhookSink;
beforeAll(async () => {
  const args = ["--allow-private-targets", "127.0.0.0/8"];
  server = await startTestServer({ manualClock: true, args });
  sink = new WebhookSink();
});
afterAll(async () => {
  await server.stop();
  sink.stop();
});

test("the message of a 402 names the next refill of the plan", async () => {
  const { send } = await begin();
  const { next_at } = (await send("put", "m/plan", { amount: 5, every: "month" })).body;
  const { error } = expectError(await send("post", "m/deduct", { amount: 1 }), "insufficient_balance");
  expect(error.message).toContain(`The next refill of the plan is at ${next_at}. To refill now, use `);
  const held = expectError(await send("post", "m/holds", { amount: 1 }), "insufficient_balance");
  expect(held.error.message).toContain(`The next refill of the plan is at ${next_at}.`);
  const none = expectError(await send("post", "other/deduct", { amount: 1 }), "insufficient_balance");
  expect(none.error.message).toBe("The deduction is 1, but the balance is 0.");
});

/** Creates an account with the meter `m`. */
async function begin() {
  const { key } = await server.account({ balance: 10_000 });
  // The server may have been restarted meanwhile.
  const send = (method: "get" | "post" | "put" | "delete", path: string, body?: object) =>
    server.client(key)[method](`/v1/meter/${path}`, body as never);
  const state = async () => {
    const { balance, held } = (await send("get", "m/balance")).body;
    return [balance, held];
  };
  const entries = async () =>
    ((await send("get", "m/history")).body.entries as { kind: string; amount: number }[])
      .map(({ kind, amount }) => [kind, amount])
      .reverse();
  return { key, send, state, entries };
}

describe("times of refills", () => {
  const at = (text: string) => Date.parse(`${text}Z`);
  const next = (every: "day" | "week" | "month", day: number | null, after: string) =>
    new Date(nextRefill({ every, day }, at(after))).toISOString().slice(0, 16);
  test.each<["day" | "week" | "month", number | null, string, string]>([
    ["day", null, "2026-03-10T12:00", "2026-03-11T00:00"],
    ["day", null, "2026-03-11T00:00", "2026-03-12T00:00"],
    ["day", null, "2026-12-31T23:59", "2027-01-01T00:00"],
    // 10 March 2026 is a Tuesday.
    ["week", 1, "2026-03-10T12:00", "2026-03-16T00:00"],
    ["week", 1, "2026-03-16T00:00", "2026-03-23T00:00"],
    ["week", 2, "2026-03-10T00:00", "2026-03-17T00:00"],
    ["week", 3, "2026-03-10T12:00", "2026-03-11T00:00"],
    ["week", 7, "2026-03-14T23:59", "2026-03-15T00:00"],
    ["month", 1, "2026-03-10T12:00", "2026-04-01T00:00"],
    ["month", 15, "2026-03-10T12:00", "2026-03-15T00:00"],
    ["month", 31, "2026-03-31T00:00", "2026-04-30T00:00"],
    ["month", 31, "2026-01-31T00:00", "2026-02-28T00:00"],
    ["month", 31, "2028-02-10T00:00", "2028-02-29T00:00"],
    ["month", 31, "2026-12-31T00:00", "2027-01-31T00:00"],
    ["month", 30, "2026-02-28T00:00", "2026-03-30T00:00"],
  ])("every %s on day %p after %s: %s", (every, day, after, expected) => {
    expect(next(every, day, after)).toBe(expected);
  });
});

describe("plans", () => {
  test("raise a balance on time, at the first read and without requests", async () => {
    const { send, state, entries } = await begin();
    expectError(await send("get", "m/plan"), "not_found");
    const set = await send("put", "m/plan", { amount: 100, every: "day" });
    const midnight = new Date(TEST_START_MS - (TEST_START_MS % DAY_MS) + DAY_MS).toISOString();
    const plan = { meter_id: "m", amount: 100, every: "day", mode: "raise", day: null, carry_max: null };
    expect([set.status, set.body]).toEqual([200, { ...plan, next_at: midnight }]);
    expect((await send("get", "m/plan")).body).toEqual(set.body);
    expect((await send("get", "m/balance")).body["has_plan"]).toBe(true);
    expect((await send("get", "other/balance")).body).not.toContainKey("has_plan");
    expect(await state()).toEqual([0, 0]);
    await server.clock.advance(Date.parse(midnight) - server.clock.now() - 1);
    expect(await state()).toEqual([0, 0]);
    await server.clock.advance(1);
    expect(await state()).toEqual([100, 0]);
    await send("post", "m/deduct", { amount: 30 });
    await send("post", "m/refill", { amount: 5 });
    // Two days later, the job has run.
    await server.clock.advance(2 * DAY_MS);
    const rows = server.server.kernel.db.all<{ balance_after: number; request_id: Uint8Array }>(
      "SELECT balance_after, request_id FROM meter_entries WHERE kind = 5 ORDER BY sequence DESC LIMIT 1",
    )();
    expect(rows.map(({ balance_after, request_id }) => [balance_after, request_id.length])).toEqual([
      [100, 0],
    ]);
    expect(await entries()).toEqual([
      ["reset", 0],
      ["grant", 100],
      ["deduct", -30],
      ["refill", 5],
      ["grant", 25],
    ]);
    const { body } = await send("get", "m/history?limit=1");
    expect((body.entries as { request_id: unknown }[])[0]?.request_id).toBeNull();
    expect((await send("delete", "m/plan")).body).toEqual({ success: true });
    expect((await send("delete", "m/plan")).body).toEqual({ success: true });
    await send("post", "m/reset", { balance: 0 });
    await server.clock.advance(2 * DAY_MS);
    expect(await state()).toEqual([0, 0]);
  });

  test("add, with a maximum carried over, but not below the held credits", async () => {
    const { send, state, entries } = await begin();
    await send("post", "m/refill", { amount: 500 });
    await server.clock.advance(HOUR_MS);
    await send("post", "m/holds", { amount: 80, ttl_seconds: 86_400 });
    await send("put", "m/plan", { amount: 100, every: "day", mode: "add", carry_max: 50 });
    await server.clock.advance(DAY_MS - (server.clock.now() % DAY_MS));
    expect(await state()).toEqual([180, 80]);
    expect((await entries()).slice(1)).toEqual([
      ["reset", -420],
      ["grant", 100],
    ]);
    // The hold has expired by the next midnight.
    await server.clock.advance(DAY_MS);
    expect(await state()).toEqual([150, 0]);
    await send("put", "m/plan", { amount: MOST, every: "week", mode: "add", day: 7, start_now: true });
    expect(await state()).toEqual([MOST, 0]);
  });

  test("refills missed during a downtime: raised once, added each time", async () => {
    const raising = await begin();
    const adding = await begin();
    await raising.send("put", "m/plan", { amount: 10, every: "day", start_now: true });
    await adding.send("put", "m/plan", { amount: 10, every: "day", mode: "add" });
    expect(await raising.state()).toEqual([10, 0]);
    await raising.send("post", "m/reset", { balance: 0 });
    // Nothing runs while only the wall clock advances.
    server.clock.setWall(3 * DAY_MS);
    await server.restart();
    expect((await raising.entries()).slice(2)).toEqual([
      ["reset", -10],
      ["grant", 10],
    ]);
    // The clock may be wrong: one period at first, the others once it has run steadily for an hour.
    expect(await adding.entries()).toEqual([
      ["reset", 0],
      ["grant", 10],
    ]);
    await server.clock.advance(HOUR_MS + 60_000);
    expect(await adding.entries()).toEqual([["reset", 0], ...Array.from({ length: 3 }, () => ["grant", 10])]);
    const { body } = await adding.send("get", "m/plan");
    expect(Date.parse(String(body.next_at)) - server.clock.now()).toBeLessThanOrEqual(DAY_MS);
  });

  test.each<[string, object]>([
    ["amount", { amount: MOST + 1, every: "day" }],
    ["every", { amount: 1, every: "year" }],
    ["mode", { amount: 1, every: "day", mode: "set" }],
    ["day", { amount: 1, every: "day", day: 1 }],
    ["day", { amount: 1, every: "week", day: 8 }],
    ["day", { amount: 1, every: "month", day: 0 }],
    ["day", { amount: 1, every: "month", day: 32 }],
    ["carry_max", { amount: 1, every: "day", carry_max: 1 }],
    ["carry_max", { amount: 1, every: "day", mode: "add", carry_max: -1 }],
  ])("a wrong %s: %o", async (field, body) => {
    const { send } = await begin();
    const response = await send("put", "m/plan", body);
    expect(Object.keys(expectError(response, "validation_error").fields as object)).toEqual([field]);
    expect((await send("get", "m/plan")).status).toBe(404);
  });
});

test.each([
  ["m/plan", { amount: 10, every: "day" }],
  ["m/alert", { threshold: 10, webhook_url: "https://example.com/low" }],
])(
  "%s of a meter that does not exist costs what its creation costs, and is free of charge afterwards",
  async (path, body) => {
    const poor = await server.account({ balance: 0 });
    expectError(await poor.put(`/v1/meter/${path}`, body), "insufficient_balance");
    expect((await poor.get("/v1/meter")).body.meters).toEqual([]);
    const account = await server.account({ balance: 1 });
    for (let time = 0; time < 2; time += 1)
      expect((await account.put(`/v1/meter/${path}`, body)).status).toBe(200);
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(0);
  },
);

test.each([0, -1])("an amount of %i in a plan", async (amount) => {
  const { send } = await begin();
  expectError(await send("put", "m/plan", { amount, every: "day" }), "invalid_request");
  expect((await send("get", "m/plan")).status).toBe(404);
});

describe("alerts", () => {
  const URL = () => sink.url("/low");
  const notices = () => sink.received.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

  test("are sent once when a meter becomes low for any reason, and again after a refill", async () => {
    const { send } = await begin();
    sink.received.length = 0;
    await send("post", "m/refill", { amount: 100 });
    expectError(await send("get", "alert"), "not_found");
    const set = await send("put", "alert", { threshold: 50, webhook_url: URL() });
    expect(set.body).toEqual({ meter_id: null, threshold: 50, webhook_url: URL() });
    expect((await send("get", "alert")).body).toEqual(set.body);
    const steps: readonly [deed: () => Promise<unknown>, notices: number][] = [
      [() => send("post", "m/deduct", { amount: 50 }), 0],
      [() => send("post", "m/deduct", { amount: 1 }), 1],
      [() => send("post", "m/deduct", { amount: 1 }), 1],
      [() => send("post", "m/refill", { amount: 52 }), 1],
      [() => send("post", "m/holds", { amount: 60, hold_id: "h" }), 2],
      [() => send("post", "m/holds/h/capture", { amount: 20 }), 2],
      [() => send("post", "m/holds", { amount: 10, hold_id: "i" }), 2],
      [() => send("post", "m/holds/i/capture", { amount: 60, over: "cap" }), 3],
      [() => send("post", "m/reset", { balance: 90 }), 3],
      [() => send("post", "m/reset", { balance: 49 }), 4],
    ];
    for (const [index, [deed, expected]] of steps.entries()) {
      await deed();
      await server.clock.advance(1);
      expect([index, notices().length]).toEqual([index, expected]);
    }
    expect(notices()[1]).toEqual({
      event: "meter.low",
      meter_id: "m",
      threshold: 50,
      balance: 100,
      available: 40,
      at: expect.any(String),
      request_id: expect.any(String),
    });
    const [first] = sink.received;
    expect(first?.headers.get("x-svc-event")).toBe("meter.low");
    expect(first?.headers.get("x-svc-signature")).not.toBeNull();
  });

  test("of a meter replace the project's alert, also after a restart, until they are deleted", async () => {
    const { key, send } = await begin();
    const applied = async () => (await send("get", "m/balance")).body["alert"];
    sink.received.length = 0;
    expect(await applied()).toBeUndefined();
    await send("put", "alert", { threshold: 50, webhook_url: URL() });
    expect(await applied()).toBe("project");
    expectError(await send("get", "m/alert"), "not_found");
    const own = { threshold: 10, webhook_url: URL() };
    expect((await send("put", "m/alert", own)).body).toEqual({ meter_id: "m", ...own });
    await send("post", "m/refill", { amount: 100 });
    await server.restart();
    expect(await applied()).toBe("meter");
    await send("post", "m/deduct", { amount: 89 });
    await server.clock.advance(1);
    expect(notices()).toEqual([]);
    await send("post", "m/deduct", { amount: 2 });
    await server.clock.advance(1);
    expect(notices()).toMatchObject([{ threshold: 10, available: 9 }]);
    expect((await send("delete", "m/alert")).body).toEqual({ success: true });
    expect((await send("delete", "m/alert")).body).toEqual({ success: true });
    await send("post", "m/reset", { balance: 50 });
    await send("post", "m/deduct", { amount: 1 });
    await server.clock.advance(1);
    expect(notices()).toHaveLength(2);
    const isListed = async () => (await server.client(key).get("/v1/meter?limit=1")).body["has_alert"];
    expect([await applied(), await isListed()]).toEqual(["project", true]);
    await send("delete", "alert");
    expect([await applied(), await isListed()]).toEqual([undefined, undefined]);
    expect((await send("delete", "never-heard-of/alert")).body).toEqual({ success: true });
    await send("post", "m/reset", { balance: 50 });
    await send("post", "m/deduct", { amount: 50 });
    await server.clock.advance(1);
    expect(notices()).toHaveLength(2);
  });

  test("are not sent for rolled-back changes", async () => {
    const { send } = await begin();
    sink.received.length = 0;
    await send("post", "m/refill", { amount: 100 });
    await send("put", "m/alert", { threshold: 50, webhook_url: URL() });
    expectError(await send("post", "m/deduct", { amount: 101 }), "insufficient_balance");
    await server.clock.advance(1);
    expect(notices()).toEqual([]);
  });

  test.each<[string, object]>([
    ["threshold", { threshold: 0, webhook_url: "https://example.com/" }],
    ["threshold", { threshold: MOST + 1, webhook_url: "https://example.com/" }],
    ["webhook_url", { threshold: 1, webhook_url: "http://1.1.1.1/" }],
    ["webhook_url", { threshold: 1, webhook_url: "https://10.0.0.1/" }],
    ["webhook_url", { threshold: 1, webhook_url: "mailto:a@example.com" }],
    ["webhook_url", { threshold: 1, webhook_url: `https://example.com/${"x".repeat(2_048)}` }],
    ["webhook_url", { threshold: 1 }],
  ])("with a wrong %s: %o", async (field, body) => {
    const { send } = await begin();
    for (const path of ["alert", "m/alert"]) {
      const response = await send("put", path, body);
      expect(Object.keys(expectError(response, "validation_error").fields as object)).toEqual([field]);
      expectError(await send("get", path), "not_found");
    }
  });
});
