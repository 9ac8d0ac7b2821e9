import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { DEFAULT_TIERS } from "../../src/kernel/limits/tiers.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let server: TestServer;
beforeAll(async () => {
  // The runs last for months: without monthly credits the balances do not change by themselves.
  const scale = { ...DEFAULT_TIERS.scale, monthlyCredits: 0 };
  server = await startTestServer({
    manualClock: true,
    config: { tiers: { ...DEFAULT_TIERS, scale } },
  });
});
afterAll(() => server.stop());

/** A request, its key if it has one, and how many copies of it are sent at the same time. */
interface Send {
  readonly key: string | null;
  readonly meter: "a" | "b";
  readonly verb: "deduct" | "refill";
  readonly amount: number;
  readonly copies: number;
}

type Step = Send | { readonly waitMs: number };

const sends: fc.Arbitrary<Step> = fc.record({
  key: fc.constantFrom(null, "x", "y", "z"),
  meter: fc.constantFrom("a", "b"),
  verb: fc.constantFrom("deduct", "refill"),
  amount: fc.constantFrom(0, 1, 2, 5),
  copies: fc.constantFrom(1, 1, 1, 3),
});
const waits: fc.Arbitrary<Step> = fc.record({ waitMs: fc.constantFrom(1, HOUR_MS, DAY_MS - 1, DAY_MS) });

/** The outcome of a response: its status, and the balance or code in its body. */
interface Outcome {
  readonly status: number;
  readonly says: unknown;
}

/** The rules in their simplest form: balances, and the first response of every key with its age. */
class Model {
  own: number;
  readonly meters: Record<string, number> = { a: 0, b: 0 };
  private readonly kept = new Map<string, { request: string; outcome: Outcome; at: number }>();
  private now = 0;

  constructor(own: number) {
    this.own = own;
  }

  wait(ms: number): void {
    this.now += ms;
  }

  send({ key, meter, verb, amount }: Send): Outcome {
    if (key === null) return this.work(meter, verb, amount);
    const request = `${meter} ${verb} ${amount}`;
    const kept = this.kept.get(key);
    if (kept !== undefined && this.now - kept.at < DAY_MS) {
      return kept.request === request ? kept.outcome : { status: 409, says: "conflict" };
    }
    const outcome = this.work(meter, verb, amount);
    this.kept.set(key, { request, outcome, at: this.now });
    return outcome;
  }

  private work(meter: string, verb: Send["verb"], amount: number): Outcome {
    if (amount === 0) return { status: 400, says: "invalid_request" };
    const balance = this.meters[meter] ?? 0;
    if (this.own < 1) return { status: 402, says: "insufficient_balance" };
    if (verb === "deduct" && balance < amount) return { status: 402, says: "insufficient_balance" };
    this.own -= 1;
    this.meters[meter] = verb === "deduct" ? balance - amount : balance + amount;
    return { status: 200, says: this.meters[meter] };
  }
}

async function play(account: AccountClient, model: Model, step: Step): Promise<void> {
  if ("waitMs" in step) {
    model.wait(step.waitMs);
    await server.clock.advance(step.waitMs);
    return;
  }
  const { key, meter, verb, amount, copies } = step;
  const headers: Record<string, string> = key === null ? {} : { "idempotency-key": key };
  const answers = await Promise.all(
    Array.from({ length: copies }, () => account.post(`/v1/meter/${meter}/${verb}`, { amount }, { headers })),
  );
  const outcomes = answers.map(({ status, body }) => ({ status, says: body.code ?? body.balance }));
  const expected = Array.from({ length: copies }, () => model.send(step));
  // Copies may be served in any order: the set of responses is determined, their assignment is not.
  const sorted = (list: Outcome[]): string[] => list.map((outcome) => JSON.stringify(outcome)).sort();
  expect(sorted(outcomes)).toEqual(sorted(expected));
}

test("random requests, repeats, duplicates and advances of days under three keys follow the rules", async () => {
  const steps = fc.array(fc.oneof({ weight: 5, arbitrary: sends }, { weight: 1, arbitrary: waits }), {
    minLength: 1,
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(3, 1_000_000), async (sequence, credits) => {
      const account = await server.account({ balance: credits });
      const model = new Model(credits);
      for (const step of sequence) await play(account, model, step);
      expect((await account.get("/v1/meter/balance")).body.balance).toBe(model.own);
      for (const id of ["a", "b"]) {
        const { body } = await account.get(`/v1/meter/${id}/balance`);
        expect(body.balance).toBe(model.meters[id]);
      }
    }),
    { numRuns: 40 },
  );
});
