import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { loadConfig } from "../../../src/config.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const HOUR_MS = 60 * 60 * 1000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ args: ["--ephemeral", "--test-clock"] });
});
afterAll(() => server.stop());

async function advance(advanceMs: number): Promise<number> {
  const { status, body } = await server.operator.post("/v1/admin/clock", { advance_ms: advanceMs });
  expect(status).toBe(200);
  return Number(body.now);
}

describe("POST /v1/admin/clock", () => {
  const path = "/v1/admin/clock";
  const FIELDS = {
    advance_ms: ['must be an integer from 0 to 3153600000000 (milliseconds), or a text such as "1ms"'],
  };
  const invalid = (name: string, body: unknown, fields: object = FIELDS) =>
    ({
      name,
      as: "operator",
      request: ["POST", path, body],
      status: 400,
      code: "validation_error",
      holds: { fields },
    }) as const;
  endpoint(() => server, "POST /v1/admin/clock", [
    {
      name: "0 ms: the current time",
      as: "operator",
      request: ["POST", path, { advance_ms: 0 }],
      status: 200,
      after: async (_, { body }) => expect(body).toEqual({ now: await advance(0) }),
    },
    {
      name: "1.0 ms",
      as: "operator",
      request: ["POST", path, '{"advance_ms": 1.0}'],
      status: 200,
      after: async (_, { body }) => expect(await advance(0)).toBe(Number(body.now)),
    },
    invalid("an empty object", {}, { advance_ms: [`is required: it ${FIELDS.advance_ms[0]}`] }),
    invalid("backwards", { advance_ms: -1 }),
    invalid("a fraction", { advance_ms: 0.5 }),
    invalid("a text", { advance_ms: "1" }),
    invalid("more than a hundred years", { advance_ms: 100 * 365 * 24 * HOUR_MS + 1 }),
    { name: "without a key", as: "nobody", request: ["POST", path, {}], status: 401, code: "unauthorized" },
    {
      name: "with the key of another account",
      request: ["POST", path, { advance_ms: HOUR_MS }],
      status: 403,
      code: "forbidden",
    },
    {
      name: "an Idempotency-Key used for another advance",
      as: "operator",
      headers: { "idempotency-key": "used" },
      before: ({ server: { operator } }) =>
        operator.post(path, { advance_ms: 1 }, { headers: { "idempotency-key": "used" } }),
      request: ["POST", path, { advance_ms: 2 }],
      status: 409,
      code: "conflict",
    },
  ]);

  endpoint(() => server, "GET /v1/admin/clock", [
    {
      name: "the current time",
      as: "operator",
      request: ["GET", path],
      status: 200,
      after: async (_, { body }) => expect(body).toEqual({ now: await advance(0) }),
    },
    { name: "without a key", as: "nobody", request: ["GET", path], status: 401, code: "unauthorized" },
    { name: "with the key of another account", request: ["GET", path], status: 403, code: "forbidden" },
  ]);

  test("starts at the real time, stands still, and advances only by request", async () => {
    const started = await startTestServer({ args: ["--ephemeral", "--test-clock"] });
    try {
      const clock = async (advanceMs: number): Promise<number> =>
        Number((await started.operator.post(path, { advance_ms: advanceMs })).body.now);
      const start = await clock(0);
      expect(Math.abs(start - Date.now())).toBeLessThan(10_000);
      await Bun.sleep(20);
      expect(await clock(0)).toBe(start);
      expect(await clock(12_345)).toBe(start + 12_345);
    } finally {
      await started.stop();
    }
  });

  test("advances once under an Idempotency-Key", async () => {
    const headers = { "idempotency-key": "moves-once" };
    const first = await server.operator.post(path, { advance_ms: HOUR_MS }, { headers });
    const again = await server.operator.post(path, { advance_ms: HOUR_MS }, { headers });
    expect(again.text).toBe(first.text);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await advance(0)).toBe(Number(first.body.now));
  });

  test("of concurrent duplicates one advances it; the others return its response or are rejected", async () => {
    const headers = { "idempotency-key": "moves-once-at-once" };
    const before = await advance(0);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => server.operator.post(path, { advance_ms: HOUR_MS }, { headers })),
    );
    expect(await advance(0)).toBe(before + HOUR_MS);
    for (const { status } of answers) expect([200, 409]).toContain(status);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
  });

  test("concurrent advances run one after another", async () => {
    const before = await advance(0);
    const times = await Promise.all([advance(1_000), advance(1_000), advance(1_000)]);
    expect(times.sort()).toEqual([before + 1_000, before + 2_000, before + 3_000]);
  });

  test("an advance by a month runs the work that becomes due", async () => {
    const account = await server.account({ tier: "free", balance: 1 });
    await advance(31 * 24 * HOUR_MS);
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(10_000);
  });
});

test("without --test-clock the endpoint does not exist", async () => {
  const plain = await startTestServer();
  try {
    expectError(await plain.operator.post("/v1/admin/clock", { advance_ms: 1 }), "not_found");
  } finally {
    await plain.stop();
  }
});

test("--test-clock is rejected without --ephemeral", () => {
  expect(() => loadConfig(["--test-clock"], {})).toThrow("--test-clock needs --ephemeral.");
  expect(loadConfig(["--test-clock", "--ephemeral"], {}).testClock).toBe(true);
});
