import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Sends requests until one is rejected. Returns the number of allowed ones, and the rejection. */
async function drain(client: Client, most = 5_000): Promise<{ allowed: number; refusal: Answer }> {
  for (let allowed = 0; allowed <= most; ) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => client.get("/v1/meter/balance")));
    allowed += answers.filter(({ status }) => status === 200).length;
    const refusal = answers.find(({ status }) => status !== 200);
    if (refusal !== undefined) return { allowed, refusal };
  }
  throw new Error(`no request was rejected within ${most} requests`);
}

function rateHeaders({ headers }: Answer): (string | null)[] {
  return ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
}

const NONE = [null, null, null];

async function setTier(userId: string, tier: string): Promise<void> {
  const answer = await server.operator.patch(`/v1/admin/accounts/${userId}`, { tier });
  expect(answer.status).toBe(200);
}

describe("the bucket", () => {
  test.each([
    ["free", 60],
    ["starter", 300],
    ["pro", 600],
    ["scale", 1800],
  ])("of the tier %s holds %d requests, then 429", async (tier, capacity) => {
    const account = await server.account({ tier });
    const { allowed, refusal } = await drain(account);
    expect(allowed).toBe(capacity);
    const now = server.clock.now() / 1000;
    expectError(refusal, "rate_limit_exceeded");
    expect(rateHeaders(refusal)).toEqual([String(capacity), "0", String(now + 60)]);
    // One token takes 60 s / capacity: less than a second from the tier `starter` on, but the header says at least 1.
    expect(refusal.headers.get("retry-after")).toBe("1");
  });

  test("does not exist for the tier unlimited: no rejections and no headers", async () => {
    const account = await server.account({ tier: "unlimited" });
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all(Array.from({ length: 200 }, () => account.get("/v1/meter/balance")));
      for (const answer of answers) {
        expect(answer.status).toBe(200);
        expect(rateHeaders(answer)).toEqual(NONE);
      }
    }
  });

  test("responses without a 429 have no rate-limit headers", async () => {
    const account = await server.account({ tier: "free" });
    for (const answer of [
      await account.get("/v1/meter/balance"),
      await account.post("/v1/meter/m/deduct", {}),
      await account.get("/v1/nowhere"),
    ]) {
      expect(rateHeaders(answer)).toEqual(NONE);
      expect(answer.headers.get("retry-after")).toBeNull();
    }
  });

  test("refills continuously: at the tier free a token a second, 60 at most", async () => {
    const account = await server.account({ tier: "free" });
    await drain(account);
    await server.clock.advance(999);
    const early = await account.get("/v1/meter/balance");
    expectError(early, "rate_limit_exceeded");
    expect(early.headers.get("retry-after")).toBe("1");
    await server.clock.advance(1);
    expect((await drain(account)).allowed).toBe(1);
    await server.clock.advance(30_500);
    const half = await drain(account);
    expect(half.allowed).toBe(30);
    // Half a token is available: 59.5 s until the bucket is full, rounded up to a whole Unix second.
    const full = Math.ceil((server.clock.now() + 59_500) / 1000);
    expect(rateHeaders(half.refusal)).toEqual(["60", "0", String(full)]);
    await server.clock.advance(60 * 60 * 1000);
    expect((await drain(account)).allowed).toBe(60);
  });

  test("a rejected request takes no token", async () => {
    const account = await server.account({ tier: "free" });
    await drain(account);
    for (let count = 0; count < 10; count += 1) {
      await server.clock.advance(100);
      const { status } = await account.get("/v1/meter/balance");
      expect(status).toBe(count < 9 ? 429 : 200);
    }
  });

  test("belongs to the key: another key of the account has its own", async () => {
    const account = await server.account({ tier: "free" });
    const rotated = await account.post("/v1/keys/rotate");
    expect(rotated.status).toBe(200);
    expect((await drain(account)).allowed).toBe(59);
    const newer = server.client(String(rotated.body.key));
    expect((await drain(newer)).allowed).toBe(60);
    const other = await server.account({ tier: "free" });
    expect((await other.get("/v1/meter/balance")).status).toBe(200);
  });

  test("does not count public endpoints and earlier rejections", async () => {
    const account = await server.account({ tier: "free" });
    for (let count = 0; count < 20; count += 1) {
      expect((await account.get("/v1/ping")).status).toBe(200);
      expect((await account.get("/v1/nowhere")).status).toBe(404);
      expect((await account.get("/v1/admin/accounts")).status).toBe(403);
    }
    expect((await drain(account)).allowed).toBe(60);
    expect((await account.get("/v1/ping")).status).toBe(200);
    expect((await account.get("/openapi.json")).status).toBe(200);
  });
});

describe("a change of tier applies immediately", () => {
  test("upwards: the bucket refills at the new rate from its level", async () => {
    const account = await server.account({ tier: "free" });
    await drain(account);
    await setTier(account.userId, "pro");
    const { refusal, allowed } = await drain(account);
    expect(allowed).toBe(0);
    expect(rateHeaders(refusal)[0]).toBe("600");
    await server.clock.advance(1_000);
    expect((await drain(account)).allowed).toBe(10);
    await server.clock.advance(60_000);
    expect((await drain(account)).allowed).toBe(600);
  });

  test("after a pause: the bucket filled at the old rate until the change", async () => {
    const account = await server.account({ tier: "free" });
    await drain(account);
    await server.clock.advance(30_000);
    await setTier(account.userId, "pro");
    expect((await drain(account)).allowed).toBe(30);
  });

  test("downwards: the level is reduced to the new size", async () => {
    const account = await server.account({ tier: "scale" });
    expect((await account.get("/v1/meter/balance")).status).toBe(200);
    await setTier(account.userId, "free");
    expect((await drain(account)).allowed).toBe(60);
  });

  test("to unlimited and back", async () => {
    const account = await server.account({ tier: "free" });
    await drain(account);
    await setTier(account.userId, "unlimited");
    const answers = await Promise.all(Array.from({ length: 100 }, () => account.get("/v1/meter/balance")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await setTier(account.userId, "free");
    expect((await account.get("/v1/meter/balance")).status).toBe(429);
  });
});

describe("the bucket of all keys of an account", () => {
  /** Clients of `account` with one key each. */
  async function keysOf(account: Client, count: number): Promise<Client[]> {
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const created = await Promise.all(Array.from({ length: count }, () => account.post("/v1/keys", terms)));
    return created.map(({ body }) => server.client(String(body.secret)));
  }

  test("has ten times the size of a key's bucket, for all keys together", async () => {
    const account = await server.account({ tier: "free", balance: 10_000 });
    const keys = await keysOf(account, 12);
    await server.clock.advance(60_000);
    const all = await Promise.all(keys.map((key) => drain(key)));
    const allowed = all.reduce((sum, item) => sum + item.allowed, 0);
    expect(allowed).toBe(600);
    // The platform key counts although it has sent no request, as does a monitor's request.
    const refusal = await account.get("/v1/meter/balance");
    const { error } = expectError(refusal, "rate_limit_exceeded");
    expect(error.message).toContain("over all keys of this account");
    expect(rateHeaders(refusal)).toEqual(["600", "0", String(Math.ceil(server.clock.now() / 1000) + 60)]);
    expect(refusal.headers.get("retry-after")).toBe("1");
    expectError(await account.get("/v1/pulse"), "rate_limit_exceeded");
    // Other accounts are not affected.
    expect((await (await server.account({ tier: "free" })).get("/v1/meter/balance")).status).toBe(200);
  });

  test("refills continuously, and its rejection takes no token of the key", async () => {
    const account = await server.account({ tier: "free", balance: 10_000 });
    const keys = await keysOf(account, 11);
    await server.clock.advance(60_000);
    for (const key of keys.slice(0, 10)) await drain(key);
    const last = keys[10] as Client;
    expect((await drain(last)).allowed).toBe(0);
    await server.clock.advance(100);
    expect((await drain(last)).allowed).toBe(1);
    // 600 a minute are ten a second. A bucket of the key alone would immediately have allowed its 59 others.
    await server.clock.advance(1_000);
    expect((await drain(last)).allowed).toBe(10);
    // The key has sent 11 requests by then, and one token was refilled immediately.
    await server.clock.advance(6_000);
    expect((await drain(last)).allowed).toBe(56);
  });

  test("a rejection by the key's bucket takes no token from it", async () => {
    const account = await server.account({ tier: "free", balance: 10_000 });
    const keys = await keysOf(account, 10);
    await server.clock.advance(60_000);
    const [first, ...others] = keys;
    // Sixty are allowed; a thousand more are rejected.
    for (let round = 0; round < 21; round += 1)
      await Promise.all(Array.from({ length: 50 }, () => (first as Client).get("/v1/meter/balance")));
    const rest = await Promise.all(others.map((key) => drain(key)));
    expect(rest.map(({ allowed }) => allowed)).toEqual(others.map(() => 60));
  });

  test("follows a change of tier and can be configured separately", async () => {
    const path = join(server.folder, "ceiling.toml");
    writeFileSync(
      path,
      "[tiers.free]\naccount_requests_per_minute = 7\n[tiers.pro]\nrequests_per_minute = 2\n",
    );
    const small = await startTestServer({ manualClock: true, args: ["--config", path] });
    try {
      const account = await small.account({ tier: "free" });
      const { allowed, refusal } = await drain(account);
      expect([allowed, rateHeaders(refusal)[0]]).toEqual([7, "7"]);
      await small.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "pro" });
      await small.clock.advance(60_000);
      // Two for the key, and ten times that for the account.
      expect((await drain(account)).allowed).toBe(2);
    } finally {
      await small.stop();
    }
  });
});

test("the limits come from the configuration file", async () => {
  const path = join(server.folder, "figures.toml");
  writeFileSync(path, "[tiers.free]\nrequests_per_minute = 3\n");
  const small = await startTestServer({ manualClock: true, args: ["--config", path] });
  try {
    const account = await small.account({ tier: "free" });
    const { allowed, refusal } = await drain(account);
    expect(allowed).toBe(3);
    expect(rateHeaders(refusal)).toEqual(["3", "0", String(TEST_START_MS / 1000 + 60)]);
    // Three a minute: the next token is available in 20 s.
    expect(refusal.headers.get("retry-after")).toBe("20");
    await small.clock.advance(19_999);
    expect((await account.get("/v1/meter/balance")).headers.get("retry-after")).toBe("1");
    await small.clock.advance(1);
    expect((await account.get("/v1/meter/balance")).status).toBe(200);
  } finally {
    await small.stop();
  }
});
