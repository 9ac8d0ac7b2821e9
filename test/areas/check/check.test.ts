import { beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { makeBearer, makeKey } from "../keys/support.ts";
import { makeProject } from "../projects/support.ts";
import { check, customer, meterFigures, postCheck, refill, remainingOf, UNKNOWN_KEY } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 1_000 });
});

const manual = { name: "requests", limit: 10, duration_ms: 60_000, auto: false };
const perMinute = (limit: number) => [{ name: "requests", limit, duration_ms: 60_000 }];
const accountBalance = async (client = account) => (await client.get("/v1/meter/balance")).body.balance;

describe("an allowed request", () => {
  test("returns the details of its key and what was taken", async () => {
    const { secret, id } = await customer(account, 1_000, {
      environment: "live",
      metadata: { plan: "pro" },
      ratelimits: perMinute(10),
      scopes: ["orders:*"],
      uses: { remaining: 7 },
    });
    await account.post("/v1/gate", { flag_key: "on", enabled: true });
    const asked = { secret, require: ["orders:read"], deduct: { amount: 5 }, flags: ["on", "gone"], cost: 2 };
    const reset_at = new Date(server.clock.now() + 6_000).toISOString();
    expect(await check(account, asked)).toEqual({
      allowed: true,
      code: "ok",
      status: 200,
      retry_after_seconds: null,
      key_id: id,
      owner_id: "acme",
      project_id: null,
      name: "k",
      environment: "live",
      scopes: ["orders:*"],
      metadata: { plan: "pro" },
      uses_remaining: 5,
      ratelimits: [{ name: "requests", limit: 10, remaining: 9, reset_at, exceeded: false }],
      meter: { meter_id: "acme", balance: 995, available: 995, deducted: 5, hold_id: null },
      flags: {
        on: { value: true, variant: "on", reason: "STATIC" },
        gone: { error: "FLAG_NOT_FOUND" },
      },
    });
    expect(await meterFigures(account)).toEqual([995, 995]);
    expect(await remainingOf(account, secret)).toEqual([5, 9]);
  });

  test("costs one credit, like a denied one", async () => {
    const { secret } = await customer(account, 5);
    const before = Number(await accountBalance());
    expect(await check(account, { secret })).toMatchObject({ allowed: true, meter: null, flags: {} });
    expect(await check(account, { secret, deduct: { amount: 6 } })).toMatchObject({ allowed: false });
    expect(await check(account, { secret: "nothing" })).toEqual(UNKNOWN_KEY as never);
    expect(await accountBalance()).toBe(before - 3);
  });

  test("adds an entry with its request id to the meter's ledger", async () => {
    const { secret } = await customer(account, 10);
    const response = await postCheck(account, { secret, deduct: { amount: 4 } });
    const { body } = await account.get("/v1/meter/acme/history");
    expect((body.entries as unknown[])[0]).toMatchObject({
      kind: "deduct",
      amount: -4,
      balance_after: 6,
      request_id: response.headers.get("x-request-id"),
    });
  });

  test("records the client's address, like verify", async () => {
    const { secret, id } = await makeKey(account);
    await check(account, { secret, meta: { ip: "203.0.113.7", user_agent: "curl" } });
    const { body } = await account.get(`/v1/keys/${id}`);
    expect(body).toMatchObject({ last_used_ip: "203.0.113.7", last_used_ua: "curl" });
  });

  test("waits for the disk only if it may write", async () => {
    const { secret } = await customer(account, 10, { ratelimits: perMinute(5) });
    const commits = () => server.server.kernel.writer.stats.commits;
    await server.server.kernel.writer.submit(() => undefined);
    const before = commits();
    expect(await check(account, { secret })).toMatchObject({ allowed: true });
    expect(commits()).toBe(before);
    expect(await check(account, { secret, deduct: { amount: 1 } })).toMatchObject({ allowed: true });
    expect(commits()).toBe(before + 1);
  });
});

describe("the charged meter", () => {
  const pays = async (terms: object, deduct: object) => {
    const { secret } = await makeKey(account, terms);
    const { code, meter } = await check(account, { secret, deduct: { amount: 1, ...deduct } });
    return [code, meter?.meter_id ?? null];
  };

  test("is that of the request, of the key, or of its owner", async () => {
    for (const meter of ["named", "keys", "owner"]) await refill(account, meter, 10);
    const both = { owner_id: "owner", meter_id: "keys" };
    expect(await pays(both, { meter_id: "named" })).toEqual(["ok", "named"]);
    expect(await pays(both, {})).toEqual(["ok", "keys"]);
    expect(await pays({ owner_id: "owner" }, {})).toEqual(["ok", "owner"]);
    expect(await pays({}, { meter_id: "named" })).toEqual(["ok", "named"]);
  });

  test("is missing: no_meter, also if the owner's id is not a valid meter id; nothing is taken", async () => {
    for (const terms of [{}, { owner_id: "ann@example.com" }, { owner_id: "x".repeat(65) }]) {
      const { secret } = await makeKey(account, {
        ...terms,
        ratelimits: perMinute(2),
        uses: { remaining: 2 },
      });
      const response = await check(account, { secret, deduct: { amount: 1 }, flags: ["on"] });
      expect(response).toMatchObject({
        allowed: false,
        code: "no_meter",
        status: 403,
        meter: null,
        flags: null,
      });
      expect(await remainingOf(account, secret)).toEqual([2, 2]);
    }
  });

  test("has a balance of 0 if it does not exist", async () => {
    expect(await pays({ owner_id: "nobody" }, {})).toEqual(["insufficient_balance", "nobody"]);
    expect(await meterFigures(account, "nobody")).toEqual([0, 0]);
  });
});

describe("denials, in their order", () => {
  test("every code, with its status", async () => {
    const wide = { owner_id: "broke", ratelimits: perMinute(1), uses: { remaining: 0 } };
    const create = (more: object) => makeKey(account, { ...wide, ...more });
    const asked = { require: ["orders:read"], deduct: { amount: 1 } };
    const denied = async (secret: string, more: object = {}) => {
      const { allowed, code, status, flags } = await check(account, { secret, ...asked, ...more });
      expect([allowed, flags]).toEqual([false, null]);
      return [code, status];
    };

    expect(await denied("acme_live_nothing")).toEqual(["invalid_key", 401]);
    const revoked = await create({ enabled: false });
    await account.delete(`/v1/keys/${revoked.id}`);
    expect(await denied(revoked.secret)).toEqual(["revoked", 401]);
    const in1s = new Date(server.clock.now() + 1_000).toISOString();
    const expired = await create({ expires_at: in1s, enabled: false });
    await server.clock.advance(1_000);
    expect(await denied(expired.secret)).toEqual(["expired", 401]);
    const off = { enabled: false, allowed_ips: ["10.0.0.1"] };
    expect(await denied((await create(off)).secret)).toEqual(["disabled", 403]);
    const bound = { allowed_ips: ["10.0.0.1"], scopes: ["other"] };
    expect(await denied((await create(bound)).secret)).toEqual(["ip_not_allowed", 403]);
    const from = { meta: { ip: "10.0.0.1" } };
    expect(await denied((await create(bound)).secret, from)).toEqual(["insufficient_scope", 403]);
    const limited = await create({ uses: { remaining: 1 }, owner_id: "rich" });
    await refill(account, "rich", 1);
    expect(await check(account, { secret: limited.secret, ...asked })).toMatchObject({ code: "ok" });
    expect(await denied(limited.secret)).toEqual(["rate_limited", 429]);
    expect(await denied((await create({})).secret)).toEqual(["usage_exceeded", 429]);
    const free = { uses: null };
    expect(await denied((await create({ ...free, owner_id: null })).secret)).toEqual(["no_meter", 403]);
    expect(await denied((await create(free)).secret)).toEqual(["insufficient_balance", 402]);
  });

  test("a deleted project's key, to the account's", async () => {
    const project = await makeProject(account);
    const { secret } = await makeKey(account, {}, project);
    const inside = await makeBearer(account, ["check:write"], project);
    expect(await check(server.client(inside.secret), { secret })).toMatchObject({ code: "ok" });
    await account.delete(`/v1/projects/${project}`);
    // A key of another project is unknown.
    expect(await check(account, { secret })).toEqual(UNKNOWN_KEY as never);
    expectError(await postCheck(server.client(inside.secret), { secret }), "forbidden");
  });

  test("limit exhausted and balance 0 is rate_limited, with the time to wait", async () => {
    const { secret } = await customer(account, 1, { ratelimits: perMinute(1) });
    const asked = { secret, deduct: { amount: 1 } };
    expect(await check(account, asked)).toMatchObject({ code: "ok" });
    expect(await check(account, asked)).toMatchObject({
      code: "rate_limited",
      status: 429,
      retry_after_seconds: 60,
      meter: null,
      ratelimits: [{ remaining: 0, exceeded: true }],
    });
  });

  test("exhausted uses return the time of their next refill", async () => {
    const uses = { remaining: 0, refill: { every: "day", amount: 5 } };
    const { secret } = await makeKey(account, { uses });
    expect(await check(account, { secret })).toMatchObject({
      code: "usage_exceeded",
      uses_remaining: 0,
      retry_after_seconds: expect.any(Number),
    });
  });

  test("balance 5, 5 twice: ok, then insufficient_balance; uses and limits stay", async () => {
    const { secret } = await customer(account, 5, { ratelimits: perMinute(10), uses: { remaining: 10 } });
    const asked = { secret, deduct: { amount: 5 } };
    expect(await check(account, asked)).toMatchObject({ code: "ok", meter: { balance: 0, deducted: 5 } });
    const before = await remainingOf(account, secret);
    expect(before).toEqual([9, 9]);
    expect(await check(account, asked)).toMatchObject({
      code: "insufficient_balance",
      status: 402,
      flags: null,
      uses_remaining: 9,
      meter: { meter_id: "acme", balance: 0, available: 0, deducted: 0, hold_id: null },
    });
    expect(await remainingOf(account, secret)).toEqual(before);
  });

  test("credits: the key's usage counts the reason of the rejection", async () => {
    const { secret, id } = await customer(account, 0);
    await check(account, { secret, deduct: { amount: 1 } });
    await check(account, { secret });
    const { body } = await account.get(`/v1/keys/${id}/usage`);
    expect(body.data).toMatchObject([{ total: 2, valid: 1, errors: { insufficient_balance: 1 } }]);
  });
});

describe("known keys", () => {
  test("are those of the caller's project, and for a key of the account the account's own", async () => {
    const [shop, other] = [await makeProject(account), await makeProject(account, "Other")];
    const keys = { account: await makeKey(account), shop: await makeKey(account, {}, shop) };
    const inShop = server.client((await makeBearer(account, ["check:write"], shop)).secret);
    const inOther = server.client((await makeBearer(account, ["check:write"], other)).secret);
    const stranger = await server.account();
    const code = async (client: typeof inShop, key: { secret: string }, more = {}) =>
      (await check(client, { secret: key.secret, ...more })).code;
    expect(await code(account, keys.account)).toBe("ok");
    expect(await code(inShop, keys.shop)).toBe("ok");
    expect(await code(account, keys.shop)).toBe("invalid_key");
    // The response reveals nothing about the key, not even an unknown limit.
    expect(await code(account, keys.shop, { ratelimits: [{ name: "none" }] })).toBe("invalid_key");
    expect(await code(inShop, keys.account)).toBe("invalid_key");
    expect(await code(inOther, keys.shop)).toBe("invalid_key");
    expect(await code(stranger, keys.account)).toBe("invalid_key");
  });

  test("meters and flags are those of the caller's project", async () => {
    const project = await makeProject(account);
    const inside = server.client(
      (await makeBearer(account, ["check:write", "meter:*", "gate:*"], project)).secret,
    );
    const { secret } = await makeKey(account, { owner_id: "acme" }, project);
    await refill(account, "acme", 10);
    await account.post("/v1/gate", { flag_key: "f", enabled: true });
    const asked = { secret, deduct: { amount: 1 }, flags: ["f"] };
    expect(await check(inside, asked)).toMatchObject({ code: "insufficient_balance" });
    await refill(inside, "acme", 1);
    expect(await check(inside, asked)).toMatchObject({ flags: { f: { error: "FLAG_NOT_FOUND" } } });
    expect(await meterFigures(account)).toEqual([10, 10]);
  });
});

describe("under an Idempotency-Key", () => {
  test("an allowed response is returned again, and nothing is taken again", async () => {
    const { secret } = await customer(account, 5, { ratelimits: [{ ...manual, auto: true }] });
    const headers = { "idempotency-key": "request-1" };
    const first = await postCheck(account, { secret, deduct: { amount: 2 } }, { headers });
    const again = await postCheck(account, { secret, deduct: { amount: 2 } }, { headers });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.text).toBe(first.text);
    expect(await meterFigures(account)).toEqual([3, 3]);
    expect(await remainingOf(account, secret)).toEqual([null, 9]);
  });

  test("a denial is evaluated again: a refill takes effect immediately", async () => {
    const { secret } = await customer(account, 1);
    const headers = { "idempotency-key": "request-2" };
    const asked = { secret, deduct: { amount: 5 } };
    expect(await check(account, asked, { headers })).toMatchObject({ code: "insufficient_balance" });
    await refill(account, "acme", 9);
    expect(await check(account, asked, { headers })).toMatchObject({ code: "ok", meter: { balance: 5 } });
    expect(await check(account, asked, { headers })).toMatchObject({ code: "ok", meter: { balance: 5 } });
    expect(await meterFigures(account)).toEqual([5, 5]);
  });

  test("a check that takes nothing is evaluated again", async () => {
    const { secret, id } = await makeKey(account, { enabled: false });
    const headers = { "idempotency-key": "request-3" };
    expect(await check(account, { secret }, { headers })).toMatchObject({ code: "disabled" });
    await account.patch(`/v1/keys/${id}`, { enabled: true });
    expect(await check(account, { secret }, { headers })).toMatchObject({ code: "ok" });
  });
});

test("402 only if the calling account has no credits: nothing is taken", async () => {
  const { secret } = await customer(account, 5, { uses: { remaining: 3 } });
  await account.post("/v1/meter/deduct", { amount: Number(await accountBalance()) });
  const response = await postCheck(account, { secret, deduct: { amount: 1 } });
  expectError(response, "insufficient_balance");
  expect(response.body).toMatchObject({ balance: 0, user_id: account.userId });
  expect(await meterFigures(account)).toEqual([5, 5]);
});

test("a key needs check:write", async () => {
  const { secret } = await makeKey(account);
  const reader = server.client((await makeBearer(account, ["keys:*", "meter:*", "gate:*"])).secret);
  expectError(await postCheck(reader, { secret }), "forbidden");
  const checker = server.client((await makeBearer(account, ["check:*"])).secret);
  expect(await check(checker, { secret })).toMatchObject({ code: "ok" });
});

test("null stands for an omitted field, as in the requests of SDKs, and for a subject that is not set", async () => {
  const { secret } = await customer(account, 0);
  const split = { by: "targetingKey", split: [{ variant: "on", weight: 1 }] };
  await account.post("/v1/gate", { flag_key: "f", enabled: true, default: split });
  const nothing = { meta: null, require: null, cost: null, ratelimits: null, deduct: null, hold: null };
  expect(await check(account, { secret, ...nothing, flags: null, context: null })).toMatchObject({
    flags: {},
  });
  const context = { targetingKey: null, plan: null };
  expect(await check(account, { secret, ...nothing, flags: ["f"], context })).toMatchObject({
    flags: { f: { value: true, reason: "SPLIT" } },
  });
});
