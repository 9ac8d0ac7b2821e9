import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FLAGS_MAX, SECRET_LENGTH_MAX } from "../../../src/areas/check/domain.ts";
import { CONTEXT_LEVELS_MAX } from "../../../src/areas/flags/evaluation/schema.ts";
import { expectError } from "../../support/errors.ts";
import { processorMs } from "../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { check, customer, postCheck, UNKNOWN_KEY } from "./support.ts";

let server: TestServer;
let account: AccountClient;
let secret: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 100_000 });
  const limits = [{ name: "exports", limit: 3, duration_ms: 60_000, auto: false }];
  ({ secret } = await customer(account, 100, { ratelimits: limits, environment: "live" }));
});
afterAll(() => server.stop());

const own = async () => (await account.get("/v1/meter/balance")).body.balance;
const keys = (count: number) => Array.from({ length: count }, (_, at) => `f${at}`);

/** An object with this number of levels. */
function nested(levels: number): object {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

const GOOD: Record<string, unknown>[] = [
  {},
  { meta: null, require: null, cost: null, ratelimits: null },
  { meta: { ip: "::1", user_agent: "x".repeat(5_000) } },
  { ratelimits: [{ name: "exports", cost: 0 }] },
  { cost: 1_000_000 },
  { flags: [] },
  { flags: keys(FLAGS_MAX) },
  { context: {} },
  { context: null },
  { context: { constructor: 1, targetingKey: "", deep: { er: [1] } } },
  { context: nested(CONTEXT_LEVELS_MAX) },
];

const BAD: [body: Record<string, unknown>, field: string][] = [
  [{ secret: "" }, "secret"],
  [{ secret: "x".repeat(SECRET_LENGTH_MAX + 1) }, "secret"],
  [{ secret: 5 }, "secret"],
  [{ secret: undefined }, "secret"],
  [{ meta: [] }, "meta"],
  [{ meta: { ip: 5 } }, "meta"],
  [{ require: [] }, "require"],
  [{ cost: -1 }, "cost"],
  [{ cost: 1_000_001 }, "cost"],
  [{ ratelimits: [{ name: "none" }] }, "ratelimits"],
  [{ ratelimits: [{ name: "exports", cost: 4 }] }, "ratelimits"],
  [{ deduct: {} }, "deduct.amount"],
  [{ deduct: { amount: 0 } }, "deduct.amount"],
  [{ deduct: { amount: 1.5 } }, "deduct.amount"],
  [{ deduct: { amount: Number.MAX_SAFE_INTEGER + 1 } }, "deduct.amount"],
  [{ deduct: { amount: 1, meter_id: "a b" } }, "deduct.meter_id"],
  [{ deduct: { amount: 1, meter_id: "x".repeat(65) } }, "deduct.meter_id"],
  [{ deduct: 5 }, "deduct"],
  [{ hold: { amount: 0 } }, "hold.amount"],
  [{ hold: { amount: 1, ttl_seconds: 0 } }, "hold.ttl_seconds"],
  [{ hold: { amount: 1, ttl_seconds: 86_401 } }, "hold.ttl_seconds"],
  [{ hold: { amount: 1, hold_id: "a b" } }, "hold.hold_id"],
  [{ deduct: { amount: 1 }, hold: { amount: 1 } }, "hold"],
  [{ flags: keys(FLAGS_MAX + 1) }, "flags"],
  [{ flags: ["Not a key"] }, "flags.0"],
  [{ flags: ["__proto__"] }, "flags.0"],
  [{ context: [] }, "context"],
  [{ context: { targetingKey: 5 } }, "context"],
  [{ context: nested(CONTEXT_LEVELS_MAX + 1) }, "body"],
  [{ context: "x" }, "context"],
];

describe("a body", () => {
  test("at its limits is accepted", async () => {
    for (const more of GOOD) {
      expect(await check(account, { secret, ...more }), JSON.stringify(more).slice(0, 80)).toMatchObject({
        allowed: true,
      });
    }
    const long = "x".repeat(SECRET_LENGTH_MAX);
    expect(await check(account, { secret: long })).toEqual(UNKNOWN_KEY as never);
    const most = { amount: Number.MAX_SAFE_INTEGER, meter_id: "x".repeat(64) };
    expect(await check(account, { secret, deduct: most })).toMatchObject({ code: "insufficient_balance" });
    expect(await check(account, { secret, hold: { ...most, ttl_seconds: 86_400 } })).toMatchObject({
      code: "insufficient_balance",
    });
  });

  test("past a limit is rejected with the field, free of charge", async () => {
    const before = await own();
    for (const [more, field] of BAD) {
      const response = await postCheck(account, { secret, ...more });
      const { fields } = expectError(response, "validation_error");
      expect(Object.keys(fields ?? {}), JSON.stringify(more).slice(0, 80)).toEqual([field]);
    }
    expect(await own()).toBe(before);
  });
});

describe("flags", () => {
  const flag = async (body: object) => {
    const { status, text } = await account.post("/v1/gate", { enabled: true, ...body });
    expect(status, text).toBe(201);
  };

  test("are evaluated for the owner, with the context and the key", async () => {
    const serve = { variant: "on" };
    const rule = (attribute: string, value: string) => ({
      when: [{ attribute, op: "in", values: [value] }],
      serve,
    });
    const only = (flag_key: string, attribute: string, value: string) =>
      flag({ flag_key, rules: [rule(attribute, value)], default: { variant: "off" } });
    await only("subject", "targetingKey", "acme");
    await only("plan", "plan", "pro");
    await only("environment", "key.environment", "live");
    await only("owner", "key.owner_id", "acme");
    await flag({ flag_key: "hidden", server_only: true });
    await flag({ flag_key: "gone", archived: true });
    const flags = ["subject", "plan", "environment", "owner", "hidden", "gone", "subject"];
    const on = (reason: string) => ({ value: true, variant: "on", reason });
    const off = { value: false, variant: "off", reason: "DEFAULT" };
    // A context cannot replace the details of the key.
    const context = { plan: "pro", key: { owner_id: "other", environment: "test" } };
    expect((await check(account, { secret, flags, context })).flags).toEqual({
      subject: on("TARGETING_MATCH"),
      plan: on("TARGETING_MATCH"),
      environment: on("TARGETING_MATCH"),
      owner: on("TARGETING_MATCH"),
      hidden: on("STATIC"),
      gone: { error: "FLAG_NOT_FOUND" },
    });
    const other = { secret, flags: ["subject", "plan"], context: { targetingKey: "other" } };
    expect((await check(account, other)).flags).toEqual({ subject: off, plan: off });
  });

  test("that leave the decision to the caller have only a reason", async () => {
    await flag({ flag_key: "yours", enabled: false, off_variant: null });
    const { flags } = await check(account, { secret, flags: ["yours"] });
    expect(flags).toEqual({ yours: { reason: "DISABLED" } });
  });

  test("have one evaluation limit together: a context above it is rejected, and nothing is taken", async () => {
    const values = Array.from({ length: 900 }, (_, at) => `v${at}`.padEnd(30, "x"));
    const rules = Array.from({ length: 10 }, () => ({
      when: [{ attribute: "many", op: "contains", values: values.slice(0, 90) }],
      serve: { variant: "on" },
    }));
    const names = Array.from({ length: FLAGS_MAX }, (_, at) => `heavy${at}`);
    for (const flag_key of names.slice(0, 20)) await flag({ flag_key, rules, default: { variant: "off" } });
    const context = { many: Array.from({ length: 2_000 }, () => "y".repeat(20)) };
    const before = await own();
    const used = await processorMs(async () => {
      const response = await postCheck(account, { secret, flags: names, context, deduct: { amount: 1 } });
      const { fields } = expectError(response, "validation_error");
      expect(Object.keys(fields ?? {})).toEqual(["context"]);
    });
    // A tenth of a second; each flag with a limit of its own would take several seconds.
    expect(used).toBeLessThan(1_000);
    expect(await own()).toBe(before);
  });
});
