import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DURATION_MS_MAX, LIMIT_BUCKETS_MAX } from "../../../src/areas/keys/domain.ts";
import { LimitLevels } from "../../../src/areas/keys/limit-levels.ts";
import { type KeyLimit, KeyLimits, keyLimits, type LimitedKey } from "../../../src/areas/keys/rate-limits.ts";
import { type KeyStore, keyStore } from "../../../src/areas/keys/store.ts";
import { UnitTx } from "../../../src/kernel/storage/tx.ts";
import { KeptLog, storageFailure } from "../../kernel/support.ts";
import { AccountClient, useTestServer } from "../../support/server.ts";
import { KernelBench } from "../projects/kernel-bench.ts";
import { makeProject } from "../projects/support.ts";
import { makeKey } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
});

const TEN = { name: "requests", limit: 10, duration_ms: 60_000 };

/** The verdict on a request. */
async function ask(secret: string, asked: object = {}): Promise<Record<string, unknown>> {
  const { status, body, text } = await account.post("/v1/keys/verify", { secret, ...asked });
  expect(status, text).toBe(200);
  return body;
}

const bench = new KernelBench();
afterAll(() => bench.close());
const levels = new LimitLevels(keyStore(bench.kernel.db), {
  writer: bench.kernel.writer,
  log: new KeptLog(),
});

function limitedKey(ref: number, limits: readonly KeyLimit[]): LimitedKey {
  const buckets = limits.map(({ name }) => ({ name: `${ref}/${name}`, last: null }));
  return { ref, accountRef: 1, allowanceRef: ref, project: null, owner_id: null, limits, buckets };
}

const keyOf = (stored: readonly object[]) => limitedKey(1, keyLimits(JSON.stringify(stored)));

const PASSED = { valid: true, error: null, retry_after_seconds: null };
const limited = (retry_after_seconds: number) => ({
  valid: false,
  error: "rate_limited",
  retry_after_seconds,
});

describe("a rate limit", () => {
  test("admits ten requests, then one every six seconds", async () => {
    const { secret } = await makeKey(account, { ratelimits: [TEN] });
    for (let left = 9; left >= 0; left -= 1) {
      const states = [{ name: "requests", limit: 10, remaining: left, exceeded: false }];
      expect(await ask(secret)).toMatchObject({ ...PASSED, ratelimits: states });
    }
    const reset_at = new Date(server.clock.now() + 60_000).toISOString();
    expect(await ask(secret)).toMatchObject({
      ...limited(6),
      ratelimits: [{ name: "requests", limit: 10, remaining: 0, reset_at, exceeded: true }],
    });
    await server.clock.advance(5_999);
    expect(await ask(secret)).toMatchObject(limited(1));
    await server.clock.advance(1);
    expect(await ask(secret)).toMatchObject(PASSED);
    expect(await ask(secret)).toMatchObject(limited(6));
  });

  test("takes the cost of a request, or nothing", async () => {
    const { secret } = await makeKey(account, { ratelimits: [TEN] });
    const costing = (cost: number) => ask(secret, { ratelimits: [{ name: "requests", cost }] });
    expect(await costing(7)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 3 }] });
    expect(await costing(4)).toMatchObject({ ...limited(6), ratelimits: [{ remaining: 3, exceeded: true }] });
    expect(await costing(0)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 3 }] });
    expect(await costing(3)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 0 }] });
    expect(await costing(0)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 0, exceeded: false }] });
  });

  test("that is not automatic applies when it is named; tokens are taken only if all limits pass", async () => {
    const exports_ = { name: "exports", limit: 2, duration_ms: 3_600_000, auto: false };
    const { secret } = await makeKey(account, { ratelimits: [TEN, exports_] });
    const named = { ratelimits: [{ name: "exports", cost: 2 }] };
    expect(await ask(secret)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 9 }, { remaining: 2 }] });
    expect(await ask(secret, named)).toMatchObject({ ratelimits: [{ remaining: 8 }, { remaining: 0 }] });
    expect(await ask(secret, named)).toMatchObject({
      ...limited(3_600),
      ratelimits: [
        { remaining: 8, exceeded: false },
        { remaining: 0, exceeded: true },
      ],
    });
    expect(await ask(secret)).toMatchObject({
      ...PASSED,
      ratelimits: [{ remaining: 7 }, { exceeded: false }],
    });
  });

  test("reports the longest wait of the exceeded limits", async () => {
    const slow = { name: "slow", limit: 1, duration_ms: 3_600_000 };
    const quick = { name: "quick", limit: 1, duration_ms: 1_000 };
    const { secret } = await makeKey(account, { ratelimits: [quick, slow] });
    expect(await ask(secret)).toMatchObject(PASSED);
    expect(await ask(secret)).toMatchObject(limited(3_600));
  });

  test("loses no token when too few uses are left", async () => {
    const one = { ...TEN, limit: 1 };
    const { secret } = await makeKey(account, { ratelimits: [one], uses: { remaining: 0 } });
    const exceeded = { valid: false, error: "usage_exceeded", uses_remaining: 0 };
    for (let turn = 0; turn < 2; turn += 1)
      expect(await ask(secret)).toMatchObject({
        ...exceeded,
        ratelimits: [{ remaining: 1, exceeded: false }],
      });
    expect(await ask(secret, { cost: 0 })).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 0 }] });
  });

  test("continues from its level when it is changed, and refills at the new rate", async () => {
    const { id, secret } = await makeKey(account, { ratelimits: [TEN] });
    const drain = { ratelimits: [{ name: "requests", cost: 10 }] };
    expect(await ask(secret, drain)).toMatchObject(PASSED);
    await server.clock.advance(6_000);
    // Until now it refilled at the old rate: one token.
    const quick = { ...TEN, limit: 1_000, duration_ms: 1_000 };
    await account.patch(`/v1/keys/${id}`, { ratelimits: [quick] });
    expect(await ask(secret)).toMatchObject({ ...PASSED, ratelimits: [{ limit: 1_000, remaining: 0 }] });
    await server.clock.advance(5);
    expect(await ask(secret)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 4 }] });
    await server.clock.advance(1_000);
    await account.patch(`/v1/keys/${id}`, { ratelimits: [{ ...TEN, limit: 3 }] });
    expect(await ask(secret)).toMatchObject({ ratelimits: [{ limit: 3, remaining: 2 }] });
  });

  test("is full again after a restart", async () => {
    const { secret } = await makeKey(account, { ratelimits: [{ ...TEN, limit: 1 }] });
    expect(await ask(secret)).toMatchObject(PASSED);
    expect(await ask(secret)).toMatchObject(limited(60));
    await server.restart();
    const again = await server.client(account.key).post("/v1/keys/verify", { secret });
    expect(again.body).toMatchObject(PASSED);
  });
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MONTH = { name: "exports", limit: 30, duration_ms: DURATION_MS_MAX };
const exporting = (cost: number) => ({ ratelimits: [{ name: "exports", cost }] });
const rowsOf = (where = "1") =>
  server.server.kernel.db.number(`SELECT count(*) AS n FROM key_limit_levels WHERE ${where}`)();
/** Stores what is only in memory, and forgets it. */
async function restart(): Promise<void> {
  await server.restart();
  account = new AccountClient(server.url, String(account.key), account.userId, account.email);
}

describe("a limit of more than an hour", () => {
  test("is exact after a stop, to the millisecond, and full only after its duration", async () => {
    const { secret } = await makeKey(account, { ratelimits: [MONTH] });
    const named = makeKey(account, { ratelimits: [{ ...MONTH, limit: 1, duration_ms: HOUR_MS + 1 }] });
    const hourly = (await named).secret;
    expect(await ask(secret, exporting(30))).toMatchObject(PASSED);
    expect(await ask(hourly)).toMatchObject(PASSED);
    await server.clock.advance(DAY_MS / 2);
    await restart();
    expect(await ask(secret)).toMatchObject(limited(12 * 3_600));
    expect(await ask(hourly)).toMatchObject(PASSED);
    await server.clock.advance(DAY_MS / 2 - 1);
    expect(await ask(secret)).toMatchObject(limited(1));
    await server.clock.advance(1);
    await restart();
    expect(await ask(secret)).toMatchObject({ ...PASSED, ratelimits: [{ remaining: 0 }] });
    await restart();
    expect(await ask(secret)).toMatchObject(limited(24 * 3_600));
    await server.clock.advance(DURATION_MS_MAX);
    await restart();
    expect(await ask(secret, exporting(30))).toMatchObject(PASSED);
  });

  test("has no row once it is full again", async () => {
    const before = rowsOf();
    const { secret } = await makeKey(account, { ratelimits: [MONTH] });
    await ask(secret, exporting(0));
    await restart();
    expect(rowsOf()).toBe(before);
    await ask(secret, exporting(2));
    await restart();
    expect(rowsOf()).toBe(before + 1);
    await server.clock.advance(2 * DAY_MS + HOUR_MS);
    expect(rowsOf(`full_at <= ${server.clock.now()}`)).toBe(0);
    expect(await ask(secret, exporting(0))).toMatchObject({ ratelimits: [{ remaining: 30 }] });
  });

  test("is the same in check, and is not taken by a check that another reason rejects", async () => {
    const { secret } = await makeKey(account, { ratelimits: [MONTH] });
    const check = async (more: object) => (await account.post("/v1/check", { secret, ...more })).body;
    await check(exporting(20));
    await check({ ...exporting(5), require: ["orders:delete"] });
    await restart();
    expect(await check(exporting(11))).toMatchObject({ allowed: false });
    expect(await ask(secret, exporting(0))).toMatchObject({ ratelimits: [{ remaining: 10 }] });
  });

  test("continues from its level when it is changed, also if it is only on the disk", async () => {
    const { id, secret } = await makeKey(account, { ratelimits: [MONTH] });
    await ask(secret, exporting(30));
    await restart();
    await server.clock.advance(10 * DAY_MS);
    const change = (ratelimits: object[]) => account.patch(`/v1/keys/${id}`, { ratelimits });
    // Until now it refilled at the old rate: ten tokens. From now on, one a day of two.
    await change([{ ...MONTH, limit: 60 }]);
    await restart();
    expect(await ask(secret, exporting(0))).toMatchObject({ ratelimits: [{ limit: 60, remaining: 10 }] });
    await server.clock.advance(DAY_MS);
    expect(await ask(secret, exporting(0))).toMatchObject({ ratelimits: [{ remaining: 12 }] });
    // Removed: no row. One that is shorter is in memory only.
    const before = rowsOf();
    await change([]);
    expect(rowsOf()).toBe(before - 1);
    await restart();
    await change([MONTH]);
    expect(await ask(secret, exporting(30))).toMatchObject(PASSED);
    await change([{ ...MONTH, duration_ms: HOUR_MS }]);
    expect(await ask(secret)).toMatchObject(limited(120));
    await restart();
    expect(rowsOf()).toBe(before - 1);
    expect(await ask(secret, exporting(30))).toMatchObject(PASSED);
  });

  test("is one bucket of an owner's keys, and of the keys that a rotation joins", async () => {
    const shared = { ...MONTH, shared: "owner" };
    const [first, second] = [
      await makeKey(account, { owner_id: "acme", ratelimits: [shared] }),
      await makeKey(account, { owner_id: "acme", ratelimits: [{ ...shared, duration_ms: HOUR_MS }] }),
    ];
    await ask(first.secret, exporting(10));
    // A use of it by a key whose limit is short counts as well.
    await ask(second.secret, exporting(5));
    await restart();
    expect(await ask(first.secret, exporting(0))).toMatchObject({ ratelimits: [{ remaining: 15 }] });
    const old = await makeKey(account, { ratelimits: [MONTH] });
    await ask(old.secret, exporting(10));
    const { body } = await account.post(`/v1/keys/${old.id}/rotate`, {});
    await restart();
    const renewed = String(body.new_secret);
    expect(await ask(renewed, exporting(5))).toMatchObject({ ratelimits: [{ remaining: 15 }] });
    expect(await ask(old.secret, exporting(0))).toMatchObject({ ratelimits: [{ remaining: 15 }] });
  });

  test("leaves no row when its project is deleted, also if it was used just before", async () => {
    const project = await makeProject(account);
    const before = rowsOf();
    const shared = { ...MONTH, name: "all", shared: "owner" };
    const { secret } = await makeKey(account, { owner_id: "acme", ratelimits: [MONTH, shared] }, project);
    await ask(secret, exporting(1));
    await restart();
    expect(rowsOf()).toBe(before + 2);
    await ask(secret, exporting(1));
    await account.delete(`/v1/projects/${project}`);
    await server.clock.advance(60_000);
    await restart();
    expect(rowsOf()).toBe(before);
  });
});

test("tokens that could not be written are written with the next ones, also of a bucket that memory has dropped", async () => {
  const log = new KeptLog();
  const store = keyStore(bench.kernel.db);
  let full = true;
  const saveLimitLevel: KeyStore["saveLimitLevel"] = (...level) => {
    if (full) throw storageFailure();
    return store.saveLimitLevel(...level);
  };
  const levels = new LimitLevels({ ...store, saveLimitLevel }, { writer: bench.kernel.writer, log });
  const stored = [{ ...MONTH, auto: true, shared: "key" }];
  const remaining = (in_: KeyLimits) => in_.states(keyOf(stored), bench.clock.now())[0]?.remaining;
  const limits = new KeyLimits(levels);
  limits.check(keyOf(stored), [], bench.clock.now()).take(new UnitTx(bench.clock.now(), null));
  await levels.finish();
  expect(log.messages("warn")).toEqual(["levels of rate limits could not be written yet"]);
  // Other buckets have taken its place in memory.
  expect(remaining(new KeyLimits(levels))).toBe(29);
  full = false;
  bench.kernel.db.execute(
    "INSERT INTO keys (ref, id, account_ref, digest, prefix, last4, name, scopes, created_at, deleted) VALUES (1, x'01', 1, x'01', 'a', '', 'k', '[]', 0, 0)",
  );
  await levels.finish();
  expect(remaining(new KeyLimits(new LimitLevels(store, { writer: bench.kernel.writer, log })))).toBe(29);
});

describe("a limit that an owner's keys share", () => {
  const shared = (limit: number) => ({ ...TEN, limit, shared: "owner" });
  const owned = (owner_id: string, limit = 2) => ({ owner_id, ratelimits: [shared(limit)] });

  test("is one bucket per owner and project", async () => {
    const project = await makeProject(account);
    const first = await makeKey(account, owned("acme"));
    const second = await makeKey(account, owned("acme"));
    const others = [await makeKey(account, owned("other")), await makeKey(account, owned("acme"), project)];
    expect(await ask(first.secret)).toMatchObject({ ratelimits: [{ remaining: 1 }] });
    expect(await ask(second.secret)).toMatchObject({ ratelimits: [{ remaining: 0 }] });
    expect(await ask(first.secret)).toMatchObject(limited(30));
    for (const { secret } of others)
      expect(await ask(secret)).toMatchObject({ ratelimits: [{ remaining: 1 }] });
    const stranger = await server.account({ tier: "unlimited" });
    const { secret } = await makeKey(stranger, owned("acme"));
    const { body } = await stranger.post("/v1/keys/verify", { secret });
    expect(body).toMatchObject({ ratelimits: [{ remaining: 1 }] });
  });

  test("applies to each request with the limit of its own key", async () => {
    const small = await makeKey(account, owned("acme", 2));
    const large = await makeKey(account, owned("acme", 100));
    expect(await ask(large.secret)).toMatchObject({ ratelimits: [{ limit: 100, remaining: 99 }] });
    expect(await ask(small.secret)).toMatchObject({ ratelimits: [{ limit: 2, remaining: 1 }] });
    expect(await ask(small.secret)).toMatchObject({ ratelimits: [{ limit: 2, remaining: 0 }] });
    expect(await ask(large.secret)).toMatchObject(limited(1));
  });
});

describe("the verdict", () => {
  test("reports the first error", async () => {
    const drained = { uses: { remaining: 0 }, ratelimits: [{ ...TEN, limit: 1 }] };
    const terms = { ...drained, allowed_ips: ["203.0.113.0/24"], enabled: false };
    const { id, secret } = await makeKey(account, terms);
    const change = (body: object) => account.patch(`/v1/keys/${id}`, body);
    const asked = { require: ["orders:write"] };
    const here = { ...asked, meta: { ip: "203.0.113.9" } };
    const error = async (body: object) => (await ask(secret, body)).error;
    expect(await error(asked)).toBe("disabled");
    await change({ enabled: true });
    expect(await error(asked)).toBe("ip_not_allowed");
    expect(await error(here)).toBe("insufficient_scope");
    await change({ scopes: ["orders:*"] });
    expect(await error(here)).toBe("usage_exceeded");
    await change({ uses: { remaining: 1 } });
    expect(await error(here)).toBe(null);
    expect(await error(here)).toBe("rate_limited");
    await change({ expires_at: new Date(server.clock.now() + 1_000).toISOString() });
    await server.clock.advance(1_000);
    expect(await error(asked)).toBe("expired");
    expect(await ask(secret)).toMatchObject({ uses_remaining: 0, ratelimits: [{ exceeded: false }] });
    await account.delete(`/v1/keys/${id}`);
    expect(await error(asked)).toBe("revoked");
  });

  test("on a key of a deleted project is deleted, even if the key has expired", async () => {
    const project = await makeProject(account);
    const expires_at = new Date(server.clock.now() + 1_000).toISOString();
    const { secret } = await makeKey(account, { expires_at }, project);
    await server.clock.advance(1_000);
    expect((await ask(secret)).error).toBe("expired");
    await account.delete(`/v1/projects/${project}`);
    expect((await ask(secret)).error).toBe("deleted");
  });

  test("contains all fields of the key", async () => {
    const terms = {
      owner_id: "acme",
      meter_id: "acme-1",
      environment: "live",
      metadata: { plan: "pro" },
      expires_at: "2031-01-01T00:00:00.000Z",
    };
    const { id, secret } = await makeKey(account, terms);
    expect(await ask(secret)).toEqual({
      valid: true,
      key_id: id,
      project_id: null,
      scopes: ["orders:read"],
      roles: [],
      permissions: [],
      error: null,
      ...terms,
      name: "k",
      enabled: true,
      uses_remaining: null,
      ratelimits: [],
      retry_after_seconds: null,
    });
    const plain = await makeKey(account);
    const bare = { owner_id: null, meter_id: null, environment: null, metadata: {}, expires_at: null };
    expect(await ask(plain.secret)).toMatchObject(bare);
  });

  test.each([
    ["203.0.113.0/24", "::ffff:203.0.113.9", true],
    ["203.0.113.0/24", "203.0.114.9", false],
    ["2001:db8::/32", "2001:db8::1", true],
    ["203.0.113.0/24", "x", false],
    ["203.0.113.0/24", null, false],
  ])("on a key for %s that is used from %s: %p", async (range, ip, valid) => {
    const { secret } = await makeKey(account, { allowed_ips: [range] });
    expect(await ask(secret, ip === null ? {} : { meta: { ip } })).toMatchObject({
      valid,
      error: valid ? null : "ip_not_allowed",
    });
  });

  test("is stored under an Idempotency-Key only if the key is valid", async () => {
    const { id, secret } = await makeKey(account, { uses: { remaining: 0 } });
    const again = (key: string) =>
      account.post("/v1/keys/verify", { secret }, { headers: { "idempotency-key": key } });
    expect((await again("a")).body).toMatchObject({ valid: false, error: "usage_exceeded" });
    await account.patch(`/v1/keys/${id}`, { uses: { remaining: 5 } });
    const passed = await again("a");
    expect(passed.body).toMatchObject({ valid: true, uses_remaining: 4 });
    const replayed = await again("a");
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    expect(replayed.text).toBe(passed.text);
    expect((await account.get(`/v1/keys/${id}`)).body).toMatchObject({ uses: { remaining: 4 } });
    // The same for a key without limited uses.
    const paused = await makeKey(account, { enabled: false });
    const send = () =>
      account.post("/v1/keys/verify", { secret: paused.secret }, { headers: { "idempotency-key": "b" } });
    expect((await send()).body).toMatchObject({ error: "disabled" });
    await account.patch(`/v1/keys/${paused.id}`, { enabled: true });
    expect((await send()).body).toMatchObject({ valid: true });
  });
});

test("property: a bucket never grants more than its capacity and its refill, and a rollback returns the tokens", () => {
  const requests = fc.array(
    fc.record({ wait: fc.nat(3_000), cost: fc.integer({ min: 0, max: 5 }), undone: fc.boolean() }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(
      requests,
      fc.integer({ min: 5, max: 20 }),
      fc.integer({ min: 1_000, max: 9_999 }),
      (all, limit, ms) => {
        const stored = [{ name: "a", limit, duration_ms: ms, auto: true, shared: "key" }];
        const bound = keyOf(stored);
        const limits = new KeyLimits(levels);
        // The level in parts of a token, as a plain sum.
        let level = limit * ms;
        let now = 1_800_000_000_000;
        for (const { wait, cost, undone } of all) {
          now += wait;
          level = Math.min(limit * ms, level + wait * limit);
          const check = limits.check(bound, [{ name: "a", cost }], now);
          expect(check.waitMs === 0).toBe(level >= cost * ms);
          if (check.waitMs > 0) continue;
          const tx = new UnitTx(now, null);
          check.take(tx);
          if (undone) tx.undo();
          else level -= cost * ms;
          expect(check.states()[0]?.remaining).toBe(Math.floor(level / ms));
        }
      },
    ),
  );
});

describe("buckets in memory", () => {
  const limits = new KeyLimits(levels);
  const parsed = keyLimits(
    JSON.stringify([{ name: "a", limit: 1, duration_ms: 3_600_000, auto: true, shared: "key" }]),
  );
  const START = 1_800_000_000_000;
  /** Takes the only token of a key. Returns whether there was one. */
  const take = (ref: number, now: number, key = limitedKey(ref, parsed)): boolean => {
    const check = limits.check(key, [], now);
    if (check.waitMs > 0) return false;
    check.take(new UnitTx(now, null));
    return true;
  };

  test(`are ${LIMIT_BUCKETS_MAX} before the oldest is dropped; full ones are dropped first, searched for once a second`, () => {
    for (let ref = 1; ref <= LIMIT_BUCKETS_MAX; ref += 1) take(ref, START);
    expect([take(1, START), take(LIMIT_BUCKETS_MAX, START)]).toEqual([false, false]);
    expect(take(LIMIT_BUCKETS_MAX + 1, START)).toBe(true);
    // The oldest was dropped, so it is full; its return dropped the next one.
    expect([take(3, START), take(1, START), take(2, START)]).toEqual([false, true, true]);
    // All of them are full an hour later: one search drops many.
    const later = START + 3_600_000;
    expect(take(LIMIT_BUCKETS_MAX + 2, later)).toBe(true);
    for (let ref = 1; ref < 1_000; ref += 1) expect(take(-ref, later)).toBe(true);
    for (let ref = 1; ref < 1_000; ref += 1) expect(take(-ref, later)).toBe(false);
  });

  test("are the same for a key in memory and for one that is read again, also after they were dropped", () => {
    const key = limitedKey(0, parsed);
    const at = START + 2 * 3_600_000;
    expect([take(0, at, key), take(0, at, key), take(0, at)]).toEqual([true, false, false]);
    // Enough new ones that none of them is full and the oldest are dropped.
    for (let ref = 1; ref <= LIMIT_BUCKETS_MAX; ref += 1) take(ref, at);
    expect([take(0, at, key), take(0, at), take(0, at, key)]).toEqual([true, false, false]);
  });
});
