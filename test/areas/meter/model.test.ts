import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { Client } from "../../support/client.ts";
import { expectConsistent, readLedger } from "../../support/ledger.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const MOST = Number.MAX_SAFE_INTEGER;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

interface Change {
  readonly verb: "deduct" | "refill" | "reset";
  readonly meter: string;
  readonly amount: number;
}

type Step = readonly Change[] | "restart";

/** The complete rule of every change. Null: rejected. */
function next(balance: number, { verb, amount }: Change): number | null {
  if (verb === "reset") return amount;
  if (amount === 0) return null;
  const after = verb === "deduct" ? balance - amount : balance + amount;
  return after < 0 || after > MOST ? null : after;
}

const change: fc.Arbitrary<Change> = fc.record({
  verb: fc.constantFrom("deduct", "refill", "reset"),
  meter: fc.constantFrom("a", "b", "balance"),
  amount: fc.oneof(
    { weight: 6, arbitrary: fc.nat(20) },
    { weight: 1, arbitrary: fc.constantFrom(MOST, MOST - 10) },
  ),
});
/** Changes of one step are sent concurrently to different meters, so that their result is deterministic. */
const together: fc.Arbitrary<Step> = fc.uniqueArray(change, {
  minLength: 1,
  maxLength: 3,
  selector: ({ meter }) => meter,
});
const steps = fc.array(
  fc.oneof({ weight: 12, arbitrary: together }, { weight: 1, arbitrary: fc.constant<Step>("restart") }),
  { minLength: 1, maxLength: 25 },
);

function send(client: Client, { verb, meter, amount }: Change) {
  const body = verb === "reset" ? { balance: amount } : { amount };
  return client.post(`/v1/meter/${meter}/${verb}`, body);
}

test("random deductions, refills, resets and restarts have the results of a simple model", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      let client: Client = await server.account({ balance: 1_000 });
      const balances = new Map<string, number>();
      const entries = new Map<string, number>();
      for (const step of sequence) {
        if (step === "restart") {
          await server.restart();
          client = server.client(client.key);
          continue;
        }
        const current = client;
        const responses = await Promise.all(step.map((one) => send(current, one)));
        for (const [index, member] of step.entries()) {
          const balance = next(balances.get(member.meter) ?? 0, member);
          const response = responses[index];
          expect(response?.status === 200 ? response.body.balance : null).toBe(balance);
          if (balance === null) continue;
          balances.set(member.meter, balance);
          entries.set(member.meter, (entries.get(member.meter) ?? 0) + 1);
        }
      }
      for (const meter of ["a", "b", "balance"]) {
        const ledger = await readLedger(client, `/v1/meter/${meter}/history`, 10);
        expect(ledger).toHaveLength(entries.get(meter) ?? 0);
        expectConsistent(ledger, balances.get(meter) ?? 0);
      }
    }),
    { numRuns: 40 },
  );
});

test("concurrent deductions of many sizes never overdraw, and none that fits is rejected", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(200),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 40 }),
      async (balance, amounts) => {
        const account = await server.account({ balance: 1_000 });
        await account.post("/v1/meter/m/reset", { balance });
        const responses = await Promise.all(
          amounts.map((amount) => account.post("/v1/meter/m/deduct", { amount })),
        );
        const taken = amounts.filter((_, index) => responses[index]?.status === 200);
        const rejected = amounts.filter((_, index) => responses[index]?.status === 402);
        expect(taken.length + rejected.length).toBe(amounts.length);
        const left = balance - taken.reduce((sum, amount) => sum + amount, 0);
        expect(left).toBeGreaterThanOrEqual(0);
        // The balance only decreases here, so that no rejected amount fits into the final balance.
        for (const amount of rejected) expect(amount).toBeGreaterThan(left);
        expect((await account.get("/v1/meter/m/balance")).body.balance).toBe(left);
      },
    ),
    { numRuns: 25 },
  );
});
