import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Answer } from "../../support/client.ts";
import { UUID_V7 } from "../../support/errors.ts";
import { expectConsistent, readLedger } from "../../support/ledger.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

const HOUR_MS = 60 * 60 * 1000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

function requestIdOf({ headers }: Answer): string | null {
  return headers.get("x-request-id");
}

function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

describe("the ledger of a tenant meter", () => {
  test("has an entry per change: kind, signed amount, balance after it, time, request", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      const account = await separateServer.account();
      const responses: Answer[] = [];
      for (const [verb, body] of [
        ["refill", { amount: 100 }],
        ["deduct", { amount: 30 }],
        ["reset", { balance: 5 }],
        ["reset", { balance: 5 }],
        ["reset", { balance: 8 }],
      ] as const) {
        responses.push(await account.post(`/v1/meter/m/${verb}`, body));
        await separateServer.clock.advance(1_500);
      }
      const { body } = await account.get("/v1/meter/m/history");
      const expected = [
        ["refill", 100, 100],
        ["deduct", -30, 70],
        ["reset", -65, 5],
        ["reset", 0, 5],
        ["reset", 3, 8],
      ].map(([kind, amount, balance_after], index) => ({
        sequence: index + 1,
        kind,
        amount,
        balance_after,
        at: iso(TEST_START_MS + index * 1_500),
        request_id: requestIdOf(responses[index] as Answer),
      }));
      expect(body).toEqual({ entries: expected.toReversed() } as never);
    } finally {
      await separateServer.stop();
    }
  });

  test("has no entry for rejected, replayed and read requests", async () => {
    const account = await server.account();
    const headers = { "idempotency-key": "once" };
    await account.post("/v1/meter/m/refill", { amount: 5 }, { headers });
    await account.post("/v1/meter/m/refill", { amount: 5 }, { headers });
    await account.post("/v1/meter/m/deduct", { amount: 6 });
    await account.post("/v1/meter/m/deduct", { amount: 0 });
    await account.get("/v1/meter/m/balance");
    const entries = await readLedger(account, "/v1/meter/m/history");
    expect(entries.map(({ kind }) => kind)).toEqual(["refill"]);
  });

  test("refers in each entry to the meter's previous entry", async () => {
    const account = await server.account();
    await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        account.post(`/v1/meter/chain-${index % 3}/refill`, { amount: index + 1 }),
      ),
    );
    const rows = server.server.kernel.db.all<{ sequence: number; previous: number; meter_ref: number }>(
      "SELECT e.sequence, e.previous, e.meter_ref FROM meter_entries e JOIN meters m ON m.ref = e.meter_ref WHERE m.meter_id LIKE 'chain-%' ORDER BY e.sequence",
    )();
    expect(rows).toHaveLength(60);
    const last = new Map<number, number>();
    for (const { sequence, previous, meter_ref } of rows) {
      expect(previous).toBe(last.get(meter_ref) ?? 0);
      last.set(meter_ref, sequence);
    }
    expect(last.size).toBe(3);
  });

  test.each([1, 2, 7, 23, 24, 100])("in pages of %d it is the same ledger", async (limit) => {
    const account = await server.account();
    await Promise.all(
      Array.from({ length: 23 }, (_, index) => account.post("/v1/meter/m/refill", { amount: index + 1 })),
    );
    const entries = await readLedger(account, "/v1/meter/m/history", limit);
    expect(entries).toHaveLength(23);
    expectConsistent(entries, (23 * 24) / 2);
    const { body } = await account.get("/v1/meter/m/history");
    expect(body.entries).toEqual(entries as never);
  });

  test("a cursor stays valid while entries are added: none is repeated or omitted", async () => {
    const account = await server.account();
    for (let count = 0; count < 4; count += 1) await account.post("/v1/meter/m/refill", { amount: 1 });
    const first = await account.get("/v1/meter/m/history?limit=2");
    await account.post("/v1/meter/m/refill", { amount: 1 });
    const cursor = encodeURIComponent(String(first.body.cursor));
    const second = await account.get(`/v1/meter/m/history?limit=2&cursor=${cursor}`);
    const balances = [first, second].flatMap(({ body }) =>
      (body.entries as { balance_after: number }[]).map(({ balance_after }) => balance_after),
    );
    expect(balances).toEqual([4, 3, 2, 1]);
    expect(second.body.cursor).toBeUndefined();
  });

  test("fifty entries by default", async () => {
    const account = await server.account();
    await Promise.all(Array.from({ length: 51 }, () => account.post("/v1/meter/m/refill", { amount: 1 })));
    const { body } = await account.get("/v1/meter/m/history");
    expect(body.entries).toHaveLength(50);
    expect(typeof body.cursor).toBe("string");
  });

  test("adds up to the balance after random concurrent changes, also with the largest numbers", async () => {
    const account = await server.account({ balance: 10_000 });
    const most = Number.MAX_SAFE_INTEGER;
    await account.post("/v1/meter/m/reset", { balance: most - 50 });
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        account.post(`/v1/meter/m/${index % 3 === 0 ? "deduct" : "refill"}`, { amount: (index % 7) + 1 }),
      ),
    );
    const { body } = await account.get("/v1/meter/m/balance");
    const entries = await readLedger(account, "/v1/meter/m/history");
    expectConsistent(entries, Number(body.balance));
    expect(entries.length).toBeGreaterThan(70);
    expect(Number(body.balance)).toBeLessThanOrEqual(most);
  });
});

describe("the ledger of the account balance", () => {
  test("has every change; a grant and a charge have no request", async () => {
    const account = await server.account({ balance: 100 });
    const start = server.clock.now();
    const refill = await account.post("/v1/meter/refill", { amount: 7 });
    const deduct = await account.post("/v1/meter/deduct", { amount: 10 });
    await account.post("/v1/meter/m/refill", { amount: 1 });
    const reset = await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { balance: 50 });
    const entries = await readLedger(account, "/v1/meter/history");
    expectConsistent(entries, 50);
    const at = iso(start);
    const hour = iso(start - (start % HOUR_MS));
    expect(entries.map(({ sequence: _, ...entry }) => entry)).toEqual([
      { kind: "reset", amount: -46, balance_after: 50, at, request_id: requestIdOf(reset) },
      {
        kind: "charge",
        amount: -1,
        balance_after: 96,
        at: hour,
        request_id: null,
        operation: "meter.refill",
        count: 1,
      },
      { kind: "deduct", amount: -10, balance_after: 97, at, request_id: requestIdOf(deduct) },
      { kind: "refill", amount: 7, balance_after: 107, at, request_id: requestIdOf(refill) },
      { kind: "grant", amount: 100, balance_after: 100, at, request_id: null },
    ]);
    for (const { request_id } of entries) if (request_id !== null) expect(request_id).toMatch(UUID_V7);
  });

  test("combines charges: one entry per operation and hour, with the balance after the last one", async () => {
    const account = await server.account({ balance: 100 });
    const hour = server.clock.now() - (server.clock.now() % HOUR_MS) + HOUR_MS;
    await server.clock.advance(hour - server.clock.now());
    const charge = (operation: string, count: number, balance_after: number, at: number): object => ({
      kind: "charge",
      operation,
      count,
      amount: -count,
      balance_after,
      at: iso(at),
      request_id: null,
    });
    const charges = async (): Promise<object[]> =>
      (await readLedger(account, "/v1/meter/history"))
        .filter(({ kind }) => kind === "charge")
        .map(({ sequence: _, ...entry }) => entry);

    for (let count = 0; count < 3; count += 1) await account.post("/v1/meter/m/refill", { amount: 9 });
    await account.post("/v1/meter/m/deduct", { amount: 1 });
    await server.clock.advance(HOUR_MS - 1);
    await account.post("/v1/meter/m/refill", { amount: 9 });
    expect(await charges()).toEqual([
      charge("meter.deduct", 1, 96, hour),
      charge("meter.refill", 4, 95, hour),
    ]);
    await server.clock.advance(1);
    await account.post("/v1/meter/m/refill", { amount: 9 });
    expect(await charges()).toEqual([
      charge("meter.refill", 1, 94, hour + HOUR_MS),
      charge("meter.deduct", 1, 96, hour),
      charge("meter.refill", 4, 95, hour),
    ]);
    await server.restart();
    const again = server.client(account.key);
    await again.post("/v1/meter/m/refill", { amount: 9 });
    const [newest] = await readLedger(again, "/v1/meter/history");
    expect(newest).toMatchObject(charge("meter.refill", 2, 93, hour + HOUR_MS));
  });

  test("adds up to the balance with any mix of charges and changes", async () => {
    const account = await server.account({ balance: 500 });
    await Promise.all(
      Array.from({ length: 150 }, (_, index) => {
        if (index % 4 === 0) return account.post("/v1/meter/deduct", { amount: 3 });
        if (index % 4 === 1) return account.post("/v1/meter/refill", { amount: 2 });
        return account.post("/v1/meter/m/refill", { amount: index % 3 });
      }),
    );
    const { body } = await account.get("/v1/meter/balance");
    const entries = await readLedger(account, "/v1/meter/history");
    const sum = entries.reduce((total, { amount }) => total + amount, 0);
    expect(sum).toBe(Number(body.balance));
    expect(entries.filter(({ kind }) => kind === "charge")).toMatchObject([{ operation: "meter.refill" }]);
  });

  test("is visible only to the account", async () => {
    const [first, second] = [await server.account({ balance: 5 }), await server.account({ balance: 6 })];
    await first.post("/v1/meter/deduct", { amount: 1 });
    await second.post("/v1/meter/deduct", { amount: 1 });
    expectConsistent(await readLedger(first, "/v1/meter/history"), 4);
    expectConsistent(await readLedger(second, "/v1/meter/history"), 5);
  });

  test.each([1, 2, 5])("in pages of %d it is the same ledger", async (limit) => {
    const account = await server.account({ balance: 100 });
    for (let count = 0; count < 9; count += 1) await account.post("/v1/meter/deduct", { amount: 1 });
    const entries = await readLedger(account, "/v1/meter/history", limit);
    expect(entries).toHaveLength(10);
    expectConsistent(entries, 91);
  });
});
