import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { GRACE_HOURS_MAX, ROTATION_INTERVAL_MS } from "../../../src/areas/accounts/domain.ts";
import { createAccounts } from "../../../src/areas/accounts/index.ts";
import { openProjectDirectory } from "../../../src/areas/projects/index.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/limits/tiers.ts";
import { Metrics } from "../../../src/kernel/metrics/metrics.ts";
import { SuspendedAccounts } from "../../../src/kernel/projects/suspended-accounts.ts";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import { UNHEARD } from "../../support/audit.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { makeBearer } from "../keys/support.ts";

const HOUR_MS = ROTATION_INTERVAL_MS;
const DAY_MS = 24 * 60 * 60 * 1000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function rotate(client: Client): Promise<{ key: string; rotatedAt: number; expiresAt: number }> {
  const { status, body } = await client.post("/v1/keys/rotate");
  expect(status).toBe(200);
  return {
    key: String(body.key),
    rotatedAt: Date.parse(String(body.rotated_at)),
    expiresAt: Date.parse(String(body.expires_at)),
  };
}

async function works(key: string | null): Promise<boolean> {
  const answer = await server.client(key).get("/v1/meter/balance");
  if (answer.status !== 200) expectError(answer, "unauthorized");
  return answer.status === 200;
}

describe("POST /v1/keys/rotate", () => {
  const rotation = ["POST", "/v1/keys/rotate"] as const;
  endpoint(() => server, "POST /v1/keys/rotate", [
    {
      name: "a new key, the time of the rotation, and the expiry of the old key",
      request: rotation,
      status: 200,
      spent: 1,
      after: ({ account }, { body }) => {
        expect(Object.keys(body).sort()).toEqual(["expires_at", "key", "rotated_at"]);
        expect(isBearerKey(String(body.key))).toBe(true);
        expect(body.key).not.toBe(account.key as string);
        expect(body.rotated_at).toBe(new Date(server.clock.now()).toISOString());
        expect(body.expires_at).toBe(new Date(server.clock.now() + 7 * DAY_MS).toISOString());
      },
    },
    {
      name: "no grace period: the old key is revoked immediately",
      request: [...rotation, { grace_hours: 0 }],
      status: 200,
      // It can no longer read the account balance.
      spent: 1,
      after: async ({ account }, { body }) => {
        expect(body.expires_at).toBe(body.rotated_at as string);
        expect([await works(account.key), await works(String(body.key))]).toEqual([false, true]);
      },
    },
    {
      name: "the longest grace period",
      request: [...rotation, { grace_hours: GRACE_HOURS_MAX }],
      status: 200,
      spent: 1,
      after: (_, { body }) =>
        expect(body.expires_at).toBe(new Date(server.clock.now() + 168 * HOUR_MS).toISOString()),
    },
    ...[-1, GRACE_HOURS_MAX + 1, 168.0001, "24", null].map((grace_hours) => ({
      name: `a grace of ${JSON.stringify(grace_hours)} hours`,
      request: [...rotation, { grace_hours }] as const,
      status: 400,
      code: "validation_error",
      holds: { fields: { grace_hours: ['must be a number from 0 to 168 (hours), or a text such as "1h"'] } },
    })),
    { name: "no JSON", request: [...rotation, "anything"], status: 400, code: "validation_error" },
    {
      name: "an invalid Idempotency-Key",
      headers: { "idempotency-key": "k".repeat(256) },
      request: rotation,
      status: 400,
      code: "validation_error",
    },
    { name: "without a key", as: "nobody", request: rotation, status: 401, code: "unauthorized" },
    {
      name: "with an empty balance",
      account: { balance: 0 },
      request: rotation,
      status: 402,
      code: "insufficient_balance",
      after: async ({ account }) => {
        await account.post("/v1/meter/refill", { amount: 1 });
        expect((await account.post("/v1/keys/rotate")).status).toBe(200);
      },
      spent: 0,
    },
    {
      name: "an Idempotency-Key used for another request",
      headers: { "idempotency-key": "k" },
      before: ({ account }) =>
        account.post("/v1/meter/refill", { amount: 1 }, { headers: { "idempotency-key": "k" } }),
      request: rotation,
      status: 409,
      code: "conflict",
    },
    {
      name: "an older key in its grace period",
      before: ({ account }) => rotate(account),
      request: rotation,
      status: 403,
      code: "forbidden",
    },
  ]);
});

test("the old key works for 7 days on the same balance and is unknown after that", async () => {
  const account = await server.account({ balance: 10 });
  const { key } = await rotate(account);
  await server.client(key).post("/v1/meter/m/refill", { amount: 1 });
  await account.post("/v1/meter/m/refill", { amount: 1 });
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(7);
  await server.clock.advance(7 * DAY_MS - 1);
  expect([await works(account.key), await works(key)]).toEqual([true, true]);
  await server.restart();
  expect([await works(account.key), await works(key)]).toEqual([true, true]);
  await server.clock.advance(1);
  expect([await works(account.key), await works(key)]).toEqual([false, true]);
  await server.restart();
  expect([await works(account.key), await works(key)]).toEqual([false, true]);
});

test("once an hour for all keys of the account; Retry-After is the remaining time", async () => {
  const account = await server.account();
  const managed = server.client((await makeBearer(account, ["*"])).secret);
  const { key } = await rotate(account);
  expect((await server.client(key).post("/v1/keys/rotate")).headers.get("retry-after")).toBe("3600");
  await server.clock.advance(HOUR_MS - 1_001);
  for (const client of [managed, server.client(key)]) {
    const refused = await client.post("/v1/keys/rotate");
    expectError(refused, "rate_limit_exceeded");
    expect(refused.headers.get("retry-after")).toBe("2");
  }
  await server.clock.advance(1_000);
  expect((await server.client(key).post("/v1/keys/rotate")).headers.get("retry-after")).toBe("1");
  await server.clock.advance(1);
  await rotate(server.client(key));
});

test("each old key keeps the expiry of its own rotation", async () => {
  const account = await server.account();
  const second = await rotate(account);
  await server.clock.advance(DAY_MS);
  const third = await rotate(server.client(second.key));
  expect(third.expiresAt - second.expiresAt).toBe(DAY_MS);
  await server.clock.advance(6 * DAY_MS);
  expect(await Promise.all([works(account.key), works(second.key), works(third.key)])).toEqual([
    false,
    true,
    true,
  ]);
  await server.clock.advance(DAY_MS);
  expect(await Promise.all([works(second.key), works(third.key)])).toEqual([false, true]);
});

test("a shorter grace period shortens that of older keys, a longer one does not extend it", async () => {
  const account = await server.account();
  const second = await rotate(account);
  await server.clock.advance(HOUR_MS);
  const shorter = await server.client(second.key).post("/v1/keys/rotate", { grace_hours: 2 });
  const third = server.client(String(shorter.body.key));
  await server.clock.advance(HOUR_MS);
  expect((await third.post("/v1/keys/rotate", { grace_hours: 100 })).status).toBe(200);
  await server.clock.advance(HOUR_MS - 1);
  expect([await works(account.key), await works(second.key)]).toEqual([true, true]);
  await server.restart();
  expect([await works(account.key), await works(second.key)]).toEqual([true, true]);
  await server.clock.advance(1);
  expect([await works(account.key), await works(second.key), await works(third.key)]).toEqual([
    false,
    false,
    true,
  ]);
});

test("without a grace period, older keys in theirs are revoked as well, also after a restart", async () => {
  const account = await server.account();
  const { key } = await rotate(account);
  await server.clock.advance(HOUR_MS);
  expect([await works(account.key), await works(key)]).toEqual([true, true]);
  const { body } = await server.client(key).post("/v1/keys/rotate", { grace_hours: 0 });
  const all = [account.key, key, String(body.key)];
  expect(await Promise.all(all.map(works))).toEqual([false, false, true]);
  await server.restart();
  expect(await Promise.all(all.map(works))).toEqual([false, false, true]);
});

test("the operator's key can be rotated", async () => {
  const separateServer = await startTestServer({ manualClock: true });
  try {
    const { body } = await separateServer.operator.post("/v1/keys/rotate");
    await separateServer.clock.advance(7 * DAY_MS);
    expectError(await separateServer.operator.get("/v1/admin/accounts"), "unauthorized");
    expect((await separateServer.client(String(body.key)).get("/v1/admin/accounts")).status).toBe(200);
  } finally {
    await separateServer.stop();
  }
});

test("of many concurrent rotations one succeeds", async () => {
  const account = await server.account({ balance: 50 });
  const answers = await Promise.all(Array.from({ length: 10 }, () => account.post("/v1/keys/rotate")));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  // The others find that the key is no longer the newest one.
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(9);
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(49);
});

test("the default grace period can be configured, also as zero", async () => {
  const path = join(server.folder, "grace.toml");
  writeFileSync(path, "[keys]\nrotation_grace_hours = 0\n");
  const strict = await startTestServer({ manualClock: true, args: ["--config", path] });
  try {
    const account = await strict.account();
    const { body } = await account.post("/v1/keys/rotate");
    expect(body.expires_at).toBe(body.rotated_at as string);
    expectError(await account.get("/v1/meter/balance"), "unauthorized");
    expect((await strict.client(String(body.key)).get("/v1/meter/balance")).status).toBe(200);
  } finally {
    await strict.stop();
  }
});

test("deliveries are signed with the newest key as soon as it is returned", async () => {
  const account = await server.account();
  const { kernel } = server.server;
  const ref = kernel.db.one<{ ref: number }, [string]>("SELECT ref FROM accounts WHERE user_id = ?")(
    account.userId,
  )?.ref;
  /** A second instance of the area on the same kernel, which does not share its memory. */
  const signingKey = (): string | null => {
    const settings = { signup: "closed", rotationGraceMs: 0, tiers: DEFAULT_TIERS, testClock: null } as const;
    const scheduler = {
      recurring: () => {},
      register: () => {},
      suspended: new SuspendedAccounts(),
    } as unknown as typeof kernel.scheduler;
    const outbox = { available: false, enqueue: () => "" };
    const contents = () => {
      throw new Error("nothing is deleted here");
    };
    const ports = { projects: openProjectDirectory(kernel), outbox, trail: UNHEARD, contents };
    return createAccounts({ ...kernel, scheduler, metrics: new Metrics() }, settings, ports).signingKey(
      ref ?? 0,
    );
  };
  expect(signingKey()).toBe(account.key as string);
  const { key } = await rotate(account);
  expect(signingKey()).toBe(key);
  await server.clock.advance(HOUR_MS);
  const next = await rotate(server.client(key));
  expect(signingKey()).toBe(next.key);
});
