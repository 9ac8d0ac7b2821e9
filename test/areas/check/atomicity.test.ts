import { beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { expectConsistent, readLedger } from "../../support/ledger.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { check, customer, meterFigures, postCheck, refill, remainingOf } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});

const LIMITS = [{ name: "requests", limit: 500, duration_ms: 60_000 }];

/** Runs checks concurrently and counts their codes. */
async function codes(asked: readonly object[]): Promise<Record<string, number>> {
  const responses = await Promise.all(asked.map((item) => check(account, item)));
  return Object.fromEntries(
    Object.entries(Object.groupBy(responses, ({ code }) => String(code))).map(([code, all]) => [
      code,
      all?.length ?? 0,
    ]),
  );
}

describe("concurrently", () => {
  test("100 checks of 1 on a balance of 50: exactly 50, with 50 uses and tokens", async () => {
    const { secret } = await customer(account, 50, { ratelimits: LIMITS, uses: { remaining: 100 } });
    const asked = Array.from({ length: 100 }, () => ({ secret, deduct: { amount: 1 } }));
    expect(await codes(asked)).toEqual({ ok: 50, insufficient_balance: 50 });
    expect(await meterFigures(account)).toEqual([0, 0]);
    expect(await remainingOf(account, secret)).toEqual([50, 450]);
    const entries = await readLedger(account, "/v1/meter/acme/history");
    expect(entries).toHaveLength(51);
    expectConsistent(entries, 0);
  });

  test("20 holds of 10 on 100: exactly 10", async () => {
    const { secret } = await customer(account, 100);
    const asked = Array.from({ length: 20 }, () => ({ secret, hold: { amount: 10 } }));
    expect(await codes(asked)).toEqual({ ok: 10, insufficient_balance: 10 });
    expect(await meterFigures(account)).toEqual([100, 0]);
  });

  test("100 checks on 30 uses, and on 30 tokens", async () => {
    const uses = await customer(account, 100, { uses: { remaining: 30 } });
    const limits = await customer(account, 0, { ratelimits: [{ ...LIMITS[0], limit: 30 }] });
    const asked = (secret: string) => Array.from({ length: 100 }, () => ({ secret, deduct: { amount: 1 } }));
    expect(await codes(asked(uses.secret))).toEqual({ ok: 30, usage_exceeded: 70 });
    expect(await codes(asked(limits.secret))).toEqual({ ok: 30, rate_limited: 70 });
    expect(await meterFigures(account)).toEqual([40, 40]);
  });

  test("a hundred repeated requests with one Idempotency-Key deduct once", async () => {
    const { secret } = await customer(account, 10);
    const headers = { "idempotency-key": "once" };
    const asked = { secret, deduct: { amount: 1 } };
    await Promise.all(Array.from({ length: 100 }, () => check(account, asked, { headers })));
    expect(await meterFigures(account)).toEqual([9, 9]);
  });
});

describe("a hold", () => {
  test("reserves credits until they are captured", async () => {
    const { secret } = await customer(account, 100);
    const response = await check(account, { secret, hold: { amount: 60, ttl_seconds: 10, hold_id: "r1" } });
    expect(response.meter).toEqual({
      meter_id: "acme",
      balance: 100,
      available: 40,
      deducted: 0,
      hold_id: "r1",
    });
    expect((await account.post("/v1/meter/acme/holds/r1/capture", { amount: 45 })).status).toBe(200);
    expect(await meterFigures(account)).toEqual([55, 55]);
  });

  test("gets a generated id and expires", async () => {
    const { secret } = await customer(account, 100);
    const { meter } = await check(account, { secret, hold: { amount: 60, ttl_seconds: 10 } });
    expect(await account.get(`/v1/meter/acme/holds/${meter?.hold_id}`)).toMatchObject({ status: 200 });
    expect(await check(account, { secret, deduct: { amount: 41 } })).toMatchObject({
      code: "insufficient_balance",
      meter: { balance: 100, available: 40 },
    });
    await server.clock.advance(10_000);
    expect(await check(account, { secret, deduct: { amount: 41 } })).toMatchObject({ code: "ok" });
  });

  test("that is repeated: allowed unchanged, and nothing is taken again", async () => {
    const limits = [{ ...LIMITS[0], limit: 1 }];
    const { secret } = await customer(account, 60, { ratelimits: limits, uses: { remaining: 1 } });
    const asked = { secret, hold: { amount: 60, hold_id: "r1" } };
    const first = await check(account, asked);
    expect(first).toMatchObject({ code: "ok", uses_remaining: 0, meter: { available: 0 } });
    const again = await check(account, asked);
    expect(again).toMatchObject({
      allowed: true,
      code: "ok",
      uses_remaining: 0,
      retry_after_seconds: null,
      meter: first.meter,
      ratelimits: [{ remaining: 0, exceeded: false }],
    });
    expect(await meterFigures(account)).toEqual([60, 0]);
    // Another request is rejected because the key is exhausted.
    expect(await check(account, { secret, hold: { amount: 60, hold_id: "r2" } })).toMatchObject({
      code: "rate_limited",
    });
  });

  test("that exists does not allow a rejected key", async () => {
    const { secret, id } = await customer(account, 60);
    const asked = { secret, hold: { amount: 60, hold_id: "r1" } };
    await check(account, asked);
    await account.patch(`/v1/keys/${id}`, { enabled: false });
    expect(await check(account, asked)).toMatchObject({ allowed: false, code: "disabled" });
  });

  test("with other terms, or one that is no longer open: 409, and nothing is taken", async () => {
    const { secret } = await customer(account, 100, { ratelimits: LIMITS, uses: { remaining: 9 } });
    const hold = (hold_id: string, amount: number) =>
      postCheck(account, { secret, hold: { amount, hold_id } });
    expect((await hold("r1", 10)).status).toBe(200);
    expectError(await hold("r1", 11), "conflict");
    await account.post("/v1/meter/acme/holds/r1/release");
    const ended = await hold("r1", 10);
    expectError(ended, "conflict");
    expect(ended.body.status).toBe("released");
    expect(await remainingOf(account, secret)).toEqual([8, 499]);
    expect(await meterFigures(account)).toEqual([100, 100]);
  });

  test("above 1,000 open ones: 403, and nothing is taken", async () => {
    const { secret } = await customer(account, 5_000, { ratelimits: LIMITS, uses: { remaining: 9 } });
    const made = Array.from({ length: 1_000 }, () => account.post("/v1/meter/acme/holds", { amount: 1 }));
    for (const { status, text } of await Promise.all(made)) expect(status, text).toBe(201);
    expectError(await postCheck(account, { secret, hold: { amount: 1 } }), "forbidden");
    expect(await remainingOf(account, secret)).toEqual([9, 500]);
    expect(await meterFigures(account)).toEqual([5_000, 4_000]);
  });
});

describe("a failure rolls everything back", () => {
  test("a failed commit: tokens, credits and uses are restored", async () => {
    const { secret } = await customer(account, 10, { ratelimits: LIMITS, uses: { remaining: 9 } });
    const { db } = server.server.kernel;
    db.execute("PRAGMA query_only = ON");
    try {
      const response = await postCheck(account, { secret, deduct: { amount: 1 } });
      expectError(response, "read_only");
    } finally {
      db.execute("PRAGMA query_only = OFF");
    }
    expect(await remainingOf(account, secret)).toEqual([9, 500]);
    expect(await meterFigures(account)).toEqual([10, 10]);
  });

  test("a failed unit in the same batch has no effect", async () => {
    const { secret } = await customer(account, 10, { ratelimits: LIMITS });
    const asked = { secret, deduct: { amount: 1 } };
    const responses = await Promise.all([
      check(account, asked),
      account.post("/v1/meter/acme/reset", { balance: -1 }),
      postCheck(account, { secret, hold: { amount: 1, hold_id: "x" } }),
      postCheck(account, { secret, hold: { amount: 2, hold_id: "x" } }),
      check(account, asked),
    ]);
    expect(responses[0]).toMatchObject({ code: "ok" });
    expectError(responses[3], "conflict");
    expect(await remainingOf(account, secret)).toEqual([null, 497]);
    expect(await meterFigures(account)).toEqual([8, 7]);
  });

  test("after a restart, all acknowledged results are stored", async () => {
    const { secret } = await customer(account, 10, { uses: { remaining: 9 } });
    expect(await check(account, { secret, deduct: { amount: 3 } })).toMatchObject({ code: "ok" });
    expect(await check(account, { secret, hold: { amount: 5 } })).toMatchObject({ code: "ok" });
    await server.restart();
    const same = server.client(account.key);
    expect(await meterFigures(same)).toEqual([7, 2]);
    expect(await remainingOf(same, secret)).toEqual([7]);
    await refill(same, "acme", 1);
  });
});
