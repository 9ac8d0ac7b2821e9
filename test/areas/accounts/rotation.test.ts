import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROTATION_INTERVAL_MS } from "../../../src/areas/accounts/domain.ts";
import { createAccounts } from "../../../src/areas/accounts/index.ts";
import { openProjectDirectory } from "../../../src/areas/projects/index.ts";
import { Metrics } from "../../../src/kernel/metrics/metrics.ts";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import { DEFAULT_TIERS } from "../../../src/kernel/tiers.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

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
      name: "a new key, when it was made, and when the old one ends",
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
      name: "a body is not looked at",
      request: [...rotation, "anything"],
      status: 200,
      spent: 1,
    },
    {
      name: "an Idempotency-Key that is none",
      headers: { "idempotency-key": "k".repeat(256) },
      request: rotation,
      status: 400,
      code: "validation_error",
    },
    { name: "without a key", as: "nobody", request: rotation, status: 401, code: "unauthorized" },
    {
      name: "without a credit to pay with",
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
      name: "an Idempotency-Key used for something else",
      headers: { "idempotency-key": "k" },
      before: ({ account }) =>
        account.post("/v1/meter/refill", { amount: 1 }, { headers: { "idempotency-key": "k" } }),
      request: rotation,
      status: 409,
      code: "conflict",
    },
    {
      name: "a second time within the hour",
      before: ({ account }) => rotate(account),
      request: rotation,
      status: 429,
      code: "rate_limit_exceeded",
      after: (_, { headers }) => expect(headers.get("retry-after")).toBe("3600"),
    },
  ]);
});

test("the old key works for 7 days, both on the same balance, and is unknown after that", async () => {
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

test("once an hour, whichever key asks; Retry-After counts down to it", async () => {
  const account = await server.account();
  const { key } = await rotate(account);
  await server.clock.advance(HOUR_MS - 1_001);
  for (const client of [account, server.client(key)]) {
    const refused = await client.post("/v1/keys/rotate");
    expectError(refused, "rate_limit_exceeded");
    expect(refused.headers.get("retry-after")).toBe("2");
  }
  await server.clock.advance(1_000);
  expect((await server.client(key).post("/v1/keys/rotate")).headers.get("retry-after")).toBe("1");
  await server.clock.advance(1);
  await rotate(server.client(key));
});

test("each old key keeps the end that its own rotation gave it", async () => {
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

test("the operator's own key rotates as well", async () => {
  const own = await startTestServer({ manualClock: true });
  try {
    const { body } = await own.operator.post("/v1/keys/rotate");
    await own.clock.advance(7 * DAY_MS);
    expectError(await own.operator.get("/v1/admin/accounts"), "unauthorized");
    expect((await own.client(String(body.key)).get("/v1/admin/accounts")).status).toBe(200);
  } finally {
    await own.stop();
  }
});

test("of many rotations at the same time one is done", async () => {
  const account = await server.account({ balance: 50 });
  const answers = await Promise.all(Array.from({ length: 10 }, () => account.post("/v1/keys/rotate")));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(9);
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(49);
});

test("the grace can be configured, down to none", async () => {
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

test("deliveries are signed with the newest key, from the moment that it is handed out", async () => {
  const account = await server.account();
  const { kernel } = server.server;
  const ref = kernel.db
    .query<{ ref: number }, [string]>("SELECT ref FROM accounts WHERE user_id = ?")
    .get(account.userId)?.ref;
  /** The area built once more on the same kernel: what the area in use keeps in memory plays no part. */
  const signingKey = (): string => {
    const settings = { signup: "closed", rotationGraceMs: 0, tiers: DEFAULT_TIERS, testClock: null } as const;
    const scheduler = { recurring: () => {} } as unknown as typeof kernel.scheduler;
    const ports = { projects: openProjectDirectory(kernel), outbox: { available: false, enqueue: () => {} } };
    return createAccounts({ ...kernel, scheduler, metrics: new Metrics() }, settings, ports).signingKey(
      ref ?? 0,
    );
  };
  expect(signingKey()).toBe(account.key as string);
  const { key } = await rotate(account);
  expect(signingKey()).toBe(key);
  await server.clock.advance(HOUR_MS);
  const next = await rotate(account);
  expect(signingKey()).toBe(next.key);
});
