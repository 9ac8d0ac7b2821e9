import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AcrossNetwork } from "../../../../src/kernel/http/operations/perform.ts";
import { CHARGED, callerOf, FREE, outcomeOf, PerformingBench } from "./performing.ts";

let bench: PerformingBench;
beforeEach(() => {
  bench = new PerformingBench();
});
afterEach(() => bench.close());

type Phases = AcrossNetwork<string, string, { result: string }>;

const PHASES: Phases = {
  claim: () => "claim",
  outside: async () => "answer",
  settle: (_tx, _claim, result) => ({ result }),
};
/** Work that never ends in this process. */
const HANGING: Partial<Phases> = { outside: () => new Promise(() => {}) };

const open = (): number => bench.storage.rows("SELECT 1 FROM open_claims").length;

async function hang(phases: Partial<Phases> = {}, key: string | null = "key", operation = CHARGED) {
  const reached = Promise.withResolvers<void>();
  const outside = (): Promise<string> => {
    reached.resolve();
    return new Promise(() => {});
  };
  bench.performing
    .performAcross(bench.request(operation, key ?? undefined), { ...PHASES, ...HANGING, ...phases, outside })
    .catch(() => {});
  await reached.promise;
}

const restart = async (): Promise<void> => bench.start().refundAbandoned((ref) => callerOf(ref).account);

describe("a claim of a killed server", () => {
  test("is refunded once by the next start", async () => {
    await hang();
    expect({ balance: bench.balance, open: open() }).toEqual({ balance: 99, open: 1 });
    await restart();
    expect({ balance: bench.balance, open: open() }).toEqual({ balance: 100, open: 0 });
    await restart();
    expect(bench.balance).toBe(100);
    expect(bench.charger.booked).toEqual([`charge ${CHARGED.name}`, `refund ${CHARGED.name}`]);
  });

  test("also if there are many", async () => {
    bench.charger.balances.set(1, 1_000);
    for (let count = 0; count < 250; count += 1) await hang({}, `key ${count}`);
    expect(bench.balance).toBe(750);
    await restart();
    expect({ balance: bench.balance, open: open() }).toEqual({ balance: 1_000, open: 0 });
  });

  test("is closed with its outcome: a response, a rejection, a refund", async () => {
    const across = (key: string, phases: Partial<Phases> = {}) =>
      outcomeOf(bench.performing.performAcross(bench.request(CHARGED, key), { ...PHASES, ...phases }));
    await across("answer");
    await across("defect", { outside: () => Promise.reject(new TypeError("broken")) });
    await across("refund", {
      settle: (_tx, _claim, result, refund) => {
        refund();
        return { result };
      },
    });
    expect({ balance: bench.balance, open: open() }).toEqual({ balance: 99, open: 0 });
    await restart();
    expect(bench.balance).toBe(99);
  });

  test("is not stored if nothing can be refunded: free, without a key, with an interim response", async () => {
    await hang({}, "free", FREE);
    await hang({}, null);
    await hang({ interim: () => ({ result: "interim" }) }, "interim");
    expect(open()).toBe(0);
    await restart();
    expect(bench.balance).toBe(98);
  });

  test("a start does not refund its own open requests", async () => {
    const started = bench.start();
    const reached = Promise.withResolvers<void>();
    const network = Promise.withResolvers<string>();
    const request = started.performAcross(bench.request(CHARGED, "own"), {
      ...PHASES,
      outside: () => {
        reached.resolve();
        return network.promise;
      },
    });
    await reached.promise;
    await started.refundAbandoned((ref) => callerOf(ref).account);
    expect({ balance: bench.balance, open: open() }).toEqual({ balance: 99, open: 1 });
    network.resolve("done");
    expect(await request).toEqual({ result: "done" });
    expect(open()).toBe(0);
  });
});
