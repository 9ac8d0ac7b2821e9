import { afterEach, expect, test } from "bun:test";
import { DEFAULT_TIERS, TIER_NAMES } from "../../../src/kernel/limits/tiers.ts";
import type { Client } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Near the end of a month, since the clock runs every day in between. */
const START_MS = Date.UTC(2026, 2, 30, 12);
const FIRST_OF_APRIL = Date.UTC(2026, 3, 1);
const FIRST_OF_MAY = Date.UTC(2026, 4, 1);

let server: TestServer;
afterEach(() => server.stop());

async function start(): Promise<TestServer> {
  server = await startTestServer({ manualClock: { startMs: START_MS } });
  expect(server.clock.now()).toBe(START_MS);
  return server;
}

async function until(epochMs: number): Promise<void> {
  await server.clock.advance(epochMs - server.clock.now());
}

async function accountBalance(client: Client): Promise<unknown> {
  return (await server.client(client.key).get("/v1/meter/balance")).body.balance;
}

async function grantsOf(client: Client): Promise<unknown[]> {
  const { body } = await server.client(client.key).get("/v1/meter/history?limit=100");
  const entries = body.entries as { kind: string; amount: number; at: string; request_id: null }[];
  return entries
    .filter(({ kind }) => kind === "grant")
    .map(({ amount, at, request_id }) => ({ amount, at, request_id }));
}

function grant(amount: number, at: number): object {
  return { amount, at: new Date(at).toISOString(), request_id: null };
}

test("on the first of the month, 00:00 UTC, a balance below the tier's monthly credits is raised to them", async () => {
  await start();
  const accounts = new Map<string, Client>();
  for (const tier of TIER_NAMES) accounts.set(tier, await server.account({ tier, balance: 3 }));
  await until(FIRST_OF_APRIL - 1);
  for (const account of accounts.values()) expect(await accountBalance(account)).toBe(3);
  await until(FIRST_OF_APRIL);
  for (const [tier, account] of accounts) {
    const figure = DEFAULT_TIERS[tier as keyof typeof DEFAULT_TIERS].monthlyCredits;
    expect(await accountBalance(account)).toBe(tier === "unlimited" ? 3 : figure);
    const initial = grant(3, START_MS);
    const monthly = grant(figure - 3, FIRST_OF_APRIL);
    expect(await grantsOf(account)).toEqual(tier === "unlimited" ? [initial] : [monthly, initial]);
  }
});

test("a higher balance is not lowered, and an equal one gets no entry", async () => {
  await start();
  const rich = await server.account({ tier: "free", balance: 10_001 });
  const exact = await server.account({ tier: "free", balance: 10_000 });
  await until(FIRST_OF_APRIL);
  expect([await accountBalance(rich), await accountBalance(exact)]).toEqual([10_001, 10_000]);
  expect(await grantsOf(exact)).toEqual([grant(10_000, START_MS)]);
});

test("credits are granted once a month, also after restarts", async () => {
  await start();
  const account = await server.account({ tier: "free" });
  await until(FIRST_OF_APRIL);
  expect(await accountBalance(account)).toBe(10_000);
  await account.post("/v1/meter/deduct", { amount: 9_000 });
  await server.clock.advance(DAY_MS);
  await server.restart();
  await server.clock.advance(DAY_MS);
  expect(await accountBalance(account)).toBe(1_000);
  await until(FIRST_OF_MAY);
  expect(await accountBalance(account)).toBe(10_000);
  expect(await grantsOf(account)).toEqual([grant(9_000, FIRST_OF_MAY), grant(10_000, START_MS)]);
});

test("a grant that was missed while the server was down happens once at the start", async () => {
  await start();
  const account = await server.account({ tier: "free", balance: 5 });
  await server.server.stop();
  // The server is down from March to 20 May: it misses two grants.
  const twentiethOfMay = FIRST_OF_MAY + 19 * DAY_MS;
  await until(twentiethOfMay);
  await server.start();
  await server.clock.advance(0);
  expect(await accountBalance(account)).toBe(10_000);
  expect(await grantsOf(account)).toEqual([grant(9_995, twentiethOfMay), grant(5, START_MS)]);
  await server.client(account.key).post("/v1/meter/deduct", { amount: 9_000 });
  await server.restart();
  await server.clock.advance(0);
  expect(await accountBalance(account)).toBe(1_000);
  await until(Date.UTC(2026, 5, 1));
  expect(await accountBalance(account)).toBe(10_000);
});

test("a new account gets its tier's credits immediately, and no more in that month", async () => {
  await start();
  await until(FIRST_OF_APRIL);
  const account = await server.account({ tier: "starter" });
  expect(await accountBalance(account)).toBe(100_000);
  await account.post("/v1/meter/deduct", { amount: 99_999 });
  await until(FIRST_OF_MAY - 1);
  expect(await accountBalance(account)).toBe(1);
  await until(FIRST_OF_MAY);
  expect(await accountBalance(account)).toBe(100_000);
});

test("the grant uses the tier at that time", async () => {
  await start();
  const account = await server.account({ tier: "free", balance: 0 });
  await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "pro" });
  expect(await accountBalance(account)).toBe(0);
  await until(FIRST_OF_APRIL);
  expect(await accountBalance(account)).toBe(1_000_000);
});

test("all accounts get the grant, over several units of work, suspended ones included", async () => {
  await start();
  const accounts: Client[] = [];
  for (let batch = 0; batch < 5; batch += 1) {
    accounts.push(
      ...(await Promise.all(Array.from({ length: 90 }, () => server.account({ tier: "free", balance: 1 })))),
    );
  }
  const suspended = await server.account({ tier: "free", balance: 1 });
  await server.operator.patch(`/v1/admin/accounts/${suspended.userId}`, { suspended: true });
  await until(FIRST_OF_APRIL);
  const balances = await Promise.all(accounts.map(accountBalance));
  expect(new Set(balances)).toEqual(new Set([10_000]));
  await server.operator.patch(`/v1/admin/accounts/${suspended.userId}`, { suspended: false });
  expect(await accountBalance(suspended)).toBe(10_000);
});
