import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ChainVerifier } from "../../../src/verify/chain.ts";
import { createPortableCrypto } from "../../../src/verify/noble.ts";
import type { Client } from "../../support/client.ts";
import { anyLog } from "../../support/receipts.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;

const portable = createPortableCrypto();

/** The complete chain in ascending order, read from the list. */
async function listed(client: Client): Promise<Record<string, unknown>[]> {
  const receipts: Record<string, unknown>[] = [];
  let cursor = "";
  for (;;) {
    const { body } = await client.get(`/v1/witness/receipts?limit=100${cursor}`);
    receipts.push(...(body.receipts as Record<string, unknown>[]));
    if (body.cursor === undefined) return receipts.reverse();
    cursor = `&cursor=${body.cursor}`;
  }
}

/** Asserts with the portable verifier that a chain has no gap and no fork. */
function expectComplete(receipts: readonly unknown[]): void {
  if (receipts.length === 0) return;
  const verifier = new ChainVerifier(portable);
  for (const receipt of receipts) expect(verifier.add(JSON.stringify(receipt)).problems).toEqual([]);
  expect(verifier).toMatchObject({ first: "1", last: String(receipts.length) });
}

type Step = { readonly logs: readonly Record<string, unknown>[] } | "restart" | "refused" | "unpaid";

const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ logs: fc.array(anyLog, { minLength: 1, maxLength: 12 }) }) },
    { weight: 1, arbitrary: fc.constantFrom<Step>("restart", "refused", "unpaid") },
  ),
  { minLength: 1, maxLength: 6 },
);

// With few processors receipts are signed in their units of work; with more, off the event loop.
describe.each([2, 4])("a chain, on %i processors,", (cores) => {
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true, deps: { cores } });
  });
  afterAll(() => server.stop());

  test("has no gap and no fork under concurrent requests, and contains exactly the acknowledged receipts", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const { key } = await server.account({ balance: 10_000 });
        const client = (): Client => server.client(key);
        await client().post("/v1/witness/sys/init");
        const acknowledged = new Map<string, unknown>();
        for (const step of sequence) {
          if (step === "restart") await server.restart();
          else if (step === "refused") {
            expect((await client().post("/v1/witness/log", '{"log":{"a":1e400}}')).status).toBe(400);
          } else if (step === "unpaid") {
            // Logs of an account without credits share batches with other logs.
            const poor = await server.account({ balance: 1 });
            await poor.post("/v1/witness/sys/init");
            const [response] = await Promise.all([
              poor.post("/v1/witness/log", { log: { a: 1 } }),
              log(client(), { b: 1 }, acknowledged),
            ]);
            expect(response?.status).toBe(402);
          } else await Promise.all(step.logs.map((appended) => log(client(), appended, acknowledged)));
        }
        const receipts = await listed(client());
        expectComplete(receipts);
        expect(receipts).toHaveLength(acknowledged.size);
        for (const receipt of receipts)
          expect(receipt).toEqual(acknowledged.get(String(receipt.sequence_id)) as never);
      }),
      { numRuns: 12 },
    );
  }, 60_000);

  test("has no gaps under a burst on one connection pool and across accounts", async () => {
    const accounts = await Promise.all(Array.from({ length: 4 }, () => server.account()));
    await Promise.all(accounts.map((account) => account.post("/v1/witness/sys/init")));
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => accounts[n % 4]?.post("/v1/witness/log", { log: { n } })),
    );
    for (const account of accounts) {
      const receipts = await listed(account);
      expect(receipts).toHaveLength(50);
      expectComplete(receipts);
    }
  });
});

async function log(
  client: Client,
  one: Record<string, unknown>,
  acknowledged: Map<string, unknown>,
): Promise<void> {
  const { status, body } = await client.post("/v1/witness/log", { log: one });
  expect(status).toBe(200);
  expect(acknowledged.has(String(body.sequence_id))).toBe(false);
  acknowledged.set(String(body.sequence_id), body);
}
