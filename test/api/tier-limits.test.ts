import { Database as SqliteDatabase } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { ROTATION_LIMIT_FACTOR } from "../../src/areas/keys/domain.ts";
import { DEFAULT_TIERS, TIER_NAMES } from "../../src/kernel/limits/tiers.ts";
import { makeKey, termsOf, verdictOf } from "../areas/keys/support.ts";
import type { Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--durability", "normal"] });
});
afterAll(() => server.stop());

async function setTier(account: AccountClient, tier: string): Promise<void> {
  const answer = await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier });
  expect(answer.status).toBe(200);
}

/** How a resource of a kind is created and removed. */
interface Kind {
  readonly kind: "projects" | "keys" | "monitors";
  readonly code: string;
  readonly make: (client: Client) => Promise<Answer>;
  readonly remove: (client: Client, created: Answer) => Promise<Answer>;
  /** Resources that a new account already has. */
  readonly atFirst: number;
}

const KINDS: readonly Kind[] = [
  {
    kind: "projects",
    code: "project_limit_exceeded",
    make: (client) => client.post("/v1/projects", { name: "Shop" }),
    remove: (client, { body }) => client.delete(`/v1/projects/${body.id}`),
    atFirst: 1,
  },
  {
    kind: "keys",
    code: "key_limit_exceeded",
    make: (client) => client.post("/v1/keys", termsOf()),
    remove: (client, { body }) => client.delete(`/v1/keys/${body.key_id}`),
    atFirst: 0,
  },
  {
    kind: "monitors",
    code: "monitor_limit_exceeded",
    make: (client) => client.post("/v1/pulse", { type: "heartbeat", period_ms: 300_000 }),
    remove: (client, { body }) => client.delete(`/v1/pulse/${body.id}`),
    atFirst: 0,
  },
];

test("the limits are the documented ones, and the tier unlimited has none", () => {
  const figures = TIER_NAMES.slice(0, 4).map((tier) => {
    const { projects, keys, monitors, accountRequestsPerMinute, requestsPerMinute } = DEFAULT_TIERS[tier];
    expect(accountRequestsPerMinute).toBe(10 * requestsPerMinute);
    return [projects, keys, monitors];
  });
  expect(figures).toEqual([
    [5, 50, 10],
    [20, 500, 50],
    [100, 10_000, 500],
    [1_000, 1_000_000, 20_000],
  ]);
});

describe.each(KINDS)("$kind", ({ kind, code, make, remove, atFirst }) => {
  const freeMost = DEFAULT_TIERS.free[kind];

  /** An account of the tier `free` at all of its limits. */
  async function full(): Promise<{ account: AccountClient; made: Answer[] }> {
    const account = await server.account({ tier: "unlimited", balance: 1_000 });
    const created: Answer[] = [];
    while (created.length < freeMost - atFirst) created.push(await make(account));
    expect(created.map(({ status }) => status)).toEqual(created.map(() => 201));
    await setTier(account, "free");
    return { account, made: created };
  }

  test("are limited by the tier; a removal frees a place", async () => {
    const { account, made } = await full();
    const { error } = expectError(await make(account), code);
    expect(error.message).toContain(`Your tier allows ${freeMost} ${kind}, and you have ${freeMost}.`);
    const [first] = made;
    if (first !== undefined) expect((await remove(account, first)).status).toBe(200);
    expect((await make(account)).status).toBe(201);
    expectError(await make(account), code);
    await server.restart();
    expectError(await make(server.client(account.key)), code);
  });

  test("the rejection is free of charge", async () => {
    const { account } = await full();
    const { body: before } = await account.get("/v1/meter/balance");
    expectError(await make(account), code);
    expect((await account.get("/v1/meter/balance")).body).toEqual(before);
  });

  test("concurrent creations do not exceed the limit", async () => {
    const { account, made } = await full();
    if (made[0] !== undefined) await remove(account, made[0]);
    const answers = await Promise.all(Array.from({ length: 6 }, () => make(account)));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403, 403, 403, 403]);
  });

  test("count over all projects and keys; an account above the limit keeps its resources", async () => {
    const { account } = await full();
    await setTier(account, "starter");
    const extra = await make(account);
    expect(extra.status).toBe(201);
    await setTier(account, "free");
    expectError(await make(account), code);
    expect((await remove(account, extra)).status).toBe(200);
    expectError(await make(account), code);
  });

  test("the limit comes from the configuration file; the tier unlimited has none", async () => {
    const path = join(server.folder, `${kind}.toml`);
    writeFileSync(path, `[tiers.free]\n${kind} = ${atFirst + 2}\n`);
    const small = await startTestServer({ manualClock: true, args: ["--config", path] });
    try {
      const account = await small.account({ tier: "free" });
      const statuses = [await make(account), await make(account), await make(account)].map(
        ({ status }) => status,
      );
      expect(statuses).toEqual([201, 201, 403]);
      for (let count = 0; count < 6; count += 1) expect((await make(small.operator)).status).toBe(201);
    } finally {
      await small.stop();
    }
  });
});

test("a deleted project frees its place immediately, and its contents' places when they are removed", async () => {
  const account = await server.account({ tier: "free" });
  const { body } = await account.post("/v1/projects", { name: "Shop" });
  for (let count = 0; count < 50; count += 1) await makeKey(account, {}, String(body.id));
  await server.clock.advance(60_000);
  expectError(await account.post("/v1/keys", termsOf()), "key_limit_exceeded");
  await account.delete(`/v1/projects/${body.id}`);
  await server.clock.advance(60_000);
  expect((await account.post("/v1/keys", termsOf())).status).toBe(201);
});

describe("keys", () => {
  /** An account of the tier `free` with the maximum number of keys, which expire at `expires_at`. */
  async function fullOfKeys(
    expires_at: string | null,
  ): Promise<{ account: AccountClient; ids: string[]; secrets: string[] }> {
    const account = await server.account({ tier: "unlimited", balance: 1_000 });
    const keys = [];
    while (keys.length < DEFAULT_TIERS.free.keys) keys.push(await makeKey(account, { expires_at }));
    await setTier(account, "free");
    return { account, ids: keys.map(({ id }) => id), secrets: keys.map(({ secret }) => secret) };
  }

  test("that have expired free their place and are stored for 30 more days", async () => {
    const ends = server.clock.now() + HOUR_MS;
    const { account, secrets } = await fullOfKeys(new Date(ends).toISOString());
    expectError(await account.post("/v1/keys", termsOf()), "key_limit_exceeded");
    await server.clock.advance(HOUR_MS);
    // All fifty free their places together.
    for (let count = 0; count < 50; count += 1) await makeKey(account);
    await server.clock.advance(60_000);
    expectError(await account.post("/v1/keys", termsOf()), "key_limit_exceeded");
    expect((await verdictOf(account, secrets[0] ?? "")).error).toBe("expired");
    expect((await account.get("/v1/keys?limit=100")).body.keys).toHaveLength(100);
  });

  test("can each be rotated once at the limit", async () => {
    const { account, ids } = await fullOfKeys(null);
    const newest: string[] = [];
    for (const id of ids) {
      const { status, text, body } = await account.post(`/v1/keys/${id}/rotate`, { grace_hours: 24 });
      expect(status, text).toBe(200);
      newest.push(String(body.new_key_id));
    }
    expect(newest).toHaveLength((ROTATION_LIMIT_FACTOR - 1) * DEFAULT_TIERS.free.keys);
    await server.clock.advance(60_000);
    const again = `/v1/keys/${newest[0]}/rotate`;
    expectError(await account.post(again, {}), "key_limit_exceeded");
    expectError(await account.post("/v1/keys", termsOf()), "key_limit_exceeded");
    // After their grace period the old keys free their places.
    await server.clock.advance(DAY_MS);
    expect((await account.post(again, {})).status).toBe(200);
  });
});

test("resources of an older version are counted", async () => {
  await server.operator.post("/v1/keys", termsOf());
  await server.operator.post("/v1/pulse", { type: "heartbeat", period_ms: 300_000 });
  const revoked = await makeKey(server.operator);
  await server.operator.delete(`/v1/keys/${revoked.id}`);
  const counts = "SELECT account_ref, kind, count FROM account_counts WHERE count > 0 ORDER BY 1, 2";
  const { db } = server.server.kernel;
  const kept = db.all<object>(counts)();
  expect(kept.length).toBeGreaterThan(3);
  const copy = join(server.folder, "older.db");
  db.execute(`VACUUM INTO '${copy}'`);
  const older = new SqliteDatabase(copy);
  try {
    older.run("DROP TABLE account_counts");
    older.run("DROP INDEX keys_by_end");
    const triggers = older
      .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'trigger'")
      .all();
    for (const { name } of triggers) older.run(`DROP TRIGGER ${name}`);
    older.run(MIGRATIONS.find(({ name }) => name === "0013_account_counts")?.sql ?? "");
    expect(older.query<object, []>(counts).all()).toEqual(kept);
  } finally {
    older.close();
  }
});
