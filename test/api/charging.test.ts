import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function accountBalance(client: Client): Promise<unknown> {
  return (await client.get("/v1/meter/balance")).body.balance;
}

async function chargesOf(client: Client): Promise<unknown[]> {
  const { body } = await client.get("/v1/meter/history?limit=100");
  const entries = body.entries as { kind: string; operation?: string; count?: number; amount: number }[];
  return entries
    .filter(({ kind }) => kind === "charge")
    .map(({ operation, count, amount }) => ({ operation, count, amount }));
}

test("a successful request is charged in its transaction", async () => {
  const account = await server.account({ balance: 10 });
  expect((await account.post("/v1/meter/m/refill", { amount: 5 })).status).toBe(200);
  expect((await account.post("/v1/meter/m/deduct", { amount: 2 })).status).toBe(200);
  expect((await account.post("/v1/meter/m/reset", { balance: 9 })).status).toBe(200);
  expect((await account.post("/v1/keys/rotate")).status).toBe(200);
  expect(await accountBalance(account)).toBe(6);
  expect(await chargesOf(account)).toEqual([
    { operation: "keys.platform.rotate", count: 1, amount: -1 },
    { operation: "meter.reset", count: 1, amount: -1 },
    { operation: "meter.deduct", count: 1, amount: -1 },
    { operation: "meter.refill", count: 1, amount: -1 },
  ]);
});

test("reads and the account balance are free of charge", async () => {
  const account = await server.account({ balance: 10 });
  for (const path of ["balance", "history", "m/balance", "m/history"]) {
    expect((await account.get(`/v1/meter/${path}`)).status).toBe(200);
  }
  await account.post("/v1/meter/deduct", { amount: 3 });
  await account.post("/v1/meter/refill", { amount: 1 });
  expect(await accountBalance(account)).toBe(8);
  expect(await chargesOf(account)).toEqual([]);
});

describe("a 402 rolls back charge and work", () => {
  test("the response to an unaffordable charge contains the account balance", async () => {
    const account = await server.account({ balance: 1 });
    expect((await account.post("/v1/meter/m/refill", { amount: 5 })).status).toBe(200);
    const answer = await account.post("/v1/meter/m/refill", { amount: 5 });
    expectError(answer, "insufficient_balance");
    expect(answer.body).toMatchObject({ balance: 0, user_id: account.userId });
    expect((await account.get("/v1/meter/m/balance")).body.balance).toBe(5);
    expect(await chargesOf(account)).toEqual([{ operation: "meter.refill", count: 1, amount: -1 }]);
  });

  test("nothing is charged if the tenant meter has too few credits", async () => {
    const account = await server.account({ balance: 10 });
    const answer = await account.post("/v1/meter/m/deduct", { amount: 1 });
    expectError(answer, "insufficient_balance");
    expect(answer.body).toMatchObject({ balance: 0, meter_id: "m" });
    expect(await accountBalance(account)).toBe(10);
    expect(await chargesOf(account)).toEqual([]);
  });

  test("the last credit pays for a request, and the next one is rejected", async () => {
    const account = await server.account({ balance: 1 });
    expect((await account.post("/v1/meter/m/reset", { balance: 3 })).status).toBe(200);
    expectError(await account.post("/v1/meter/m/reset", { balance: 4 }), "insufficient_balance");
    expect((await account.post("/v1/meter/refill", { amount: 1 })).status).toBe(200);
    expect((await account.post("/v1/meter/m/reset", { balance: 4 })).status).toBe(200);
    expect(await accountBalance(account)).toBe(0);
  });
});

test("a 400 found by the work rolls back the charge", async () => {
  const account = await server.account({ balance: 10 });
  expectError(await account.post("/v1/meter/m/deduct", { amount: 0 }), "invalid_request");
  const most = Number.MAX_SAFE_INTEGER;
  await account.post("/v1/meter/m/reset", { balance: most });
  expectError(await account.post("/v1/meter/m/refill", { amount: 1 }), "invalid_request");
  expect(await accountBalance(account)).toBe(9);
});

test("an invalid amount is a 400 even with an empty balance", async () => {
  const account = await server.account({ tier: "free", balance: 0 });
  for (const change of ["deduct", "refill"]) {
    const path = `/v1/meter/m/${change}`;
    expectError(await account.post(path, { amount: 0 }), "invalid_request");
    const headers = { "idempotency-key": change };
    for (let time = 0; time < 2; time += 1) {
      expectError(await account.post(path, { amount: -1 }, { headers }), "invalid_request");
    }
    expectError(await account.post(path, { amount: 1 }), "insufficient_balance");
  }
});

test("a 429 found by the work rolls back the charge", async () => {
  const account = await server.account({ balance: 10 });
  const { body } = await account.post("/v1/keys/rotate");
  expectError(await server.client(String(body.key)).post("/v1/keys/rotate"), "rate_limit_exceeded");
  expect(await accountBalance(account)).toBe(9);
});

test("accounts of the tier unlimited are not charged and need no balance", async () => {
  const account = await server.account({ tier: "unlimited", balance: 0 });
  expect((await account.post("/v1/meter/m/refill", { amount: 5 })).status).toBe(200);
  expect((await account.post("/v1/meter/m/deduct", { amount: 5 })).status).toBe(200);
  expect(await accountBalance(account)).toBe(0);
  expectError(await account.post("/v1/meter/deduct", { amount: 1 }), "insufficient_balance");
  expect((await account.post("/v1/meter/refill", { amount: 7 })).body.balance).toBe(7);
});

test("10 credits pay exactly 10 of 40 concurrent requests", async () => {
  const account = await server.account({ balance: 10 });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => account.post(`/v1/meter/m${index}/refill`, { amount: 1 })),
  );
  const paid = answers.filter(({ status }) => status === 200);
  expect(paid).toHaveLength(10);
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    expectError(answer, "insufficient_balance");
    expect(answer.body.balance).toBe(0);
  }
  const balances = await Promise.all(
    Array.from({ length: 40 }, (_, index) => account.get(`/v1/meter/m${index}/balance`)),
  );
  expect(balances.filter(({ body }) => body.balance === 1)).toHaveLength(10);
  expect(await chargesOf(account)).toEqual([{ operation: "meter.refill", count: 10, amount: -10 }]);
});

test("a batch with failures of all kinds keeps exactly its successes", async () => {
  const account = await server.account({ balance: 1_000 });
  await account.post("/v1/meter/m/reset", { balance: 10 });
  const requests = Array.from({ length: 60 }, (_, index) => {
    if (index % 3 === 0) return account.post("/v1/meter/m/deduct", { amount: 1 });
    if (index % 3 === 1) return account.post("/v1/meter/m/deduct", { amount: 11 });
    return account.post(`/v1/meter/new-${index}/refill`, { amount: 0 });
  });
  const statuses = (await Promise.all(requests)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(10);
  expect(statuses.filter((status) => status === 402)).toHaveLength(30);
  expect(statuses.filter((status) => status === 400)).toHaveLength(20);
  expect(await accountBalance(account)).toBe(1_000 - 1 - 10);
  expect((await account.get("/v1/meter/m/balance")).body.balance).toBe(0);
});
