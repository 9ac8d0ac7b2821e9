import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ApiError, type ErrorCode } from "../../../../src/kernel/errors.ts";
import type { AcrossNetwork, Performer } from "../../../../src/kernel/http/operations/perform.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { realDelay } from "../../../../src/kernel/time/clock.ts";
import { CHARGED, FREE, outcomeOf, PerformingBench } from "./performing.ts";

let bench: PerformingBench;
beforeEach(() => {
  bench = new PerformingBench();
});
afterEach(() => bench.close());

type Phases = AcrossNetwork<string, string, { result: string }>;

/** Phases that record their calls; a test replaces the phase that it examines. */
function phases(changes: Partial<Phases> = {}): Phases {
  return {
    claim: (tx) => {
      bench.note(tx, "claimed");
      return "claim";
    },
    outside: async (claim) => `response to ${claim}`,
    settle: (tx, _claim, result) => {
      bench.note(tx, `settled with ${result}`);
      return { result };
    },
    ...changes,
  };
}

function across(performer: Performer, changes: Partial<Phases> = {}): Promise<unknown> {
  return outcomeOf(bench.performing.performAcross(performer, phases(changes)));
}

const DONE = { result: "response to claim" };
const BOTH_NOTES = ["claimed", "settled with response to claim"];

/** A network whose responses the test controls. */
class SlowNetwork {
  calls = 0;
  private release: (() => void)[] = [];

  readonly outside = (): Promise<string> => {
    this.calls += 1;
    return new Promise((resolve) => this.release.push(() => resolve("slow answer")));
  };

  async reached(calls: number): Promise<void> {
    while (this.calls < calls) await realDelay(1);
  }

  answerAll(): void {
    for (const answer of this.release.splice(0)) answer();
  }
}

describe("two units with the network in between", () => {
  test("claim and charge are durable before the network is used, without an open transaction", async () => {
    const seen: unknown[] = [];
    const outside = async () => {
      seen.push(
        bench.notes,
        bench.balance,
        bench.storage.db.inTransaction,
        bench.storage.writer.stats.commits,
      );
      return "response to claim";
    };
    expect(await across(bench.request(CHARGED), { outside })).toEqual(DONE);
    expect(seen).toEqual([["claimed"], 99, false, 1]);
    expect(bench.notes).toEqual(BOTH_NOTES);
    expect(bench.balance).toBe(99);
    expect(bench.storage.writer.stats.commits).toBe(2);
  });

  test("without credits there is no claim and the network is not used", async () => {
    bench.charger.balances.set(1, 0);
    const network = new SlowNetwork();
    expect(await across(bench.request(CHARGED), network)).toBe("insufficient_balance");
    expect(network.calls).toBe(0);
    expect(bench.notes).toEqual([]);
  });

  test.each<[ErrorCode, number]>([
    ["validation_error", 100],
    ["not_found", 99],
    ["conflict", 99],
    ["internal_error", 100],
  ])("a claim rejected with %s leaves a balance of %p; the network is not used", async (code, balance) => {
    const network = new SlowNetwork();
    const claim = (tx: Tx): string => {
      bench.note(tx, "claimed");
      throw new ApiError(code, "refused");
    };
    expect(await across(bench.request(CHARGED), { claim, outside: network.outside })).toBe(code);
    expect(network.calls).toBe(0);
    expect(bench.notes).toEqual([]);
    expect(bench.balance).toBe(balance);
  });

  test("settling can refund the charge", async () => {
    const settle: Phases["settle"] = (tx, _claim, result, refund) => {
      bench.note(tx, "settled");
      refund();
      return { result };
    };
    expect(await across(bench.request(CHARGED), { settle })).toEqual(DONE);
    expect(bench.charger.booked).toEqual(["charge meter.deduct", "refund meter.deduct"]);
    expect(bench.balance).toBe(100);
    expect(bench.notes).toEqual(["claimed", "settled"]);
  });

  test.each<[string, () => Promise<string>, string, number]>([
    ["a defect", () => Promise.reject(new TypeError("broken")), "TypeError: broken", 100],
    ["500", () => Promise.reject(new ApiError("internal_error", "no")), "internal_error", 100],
    ["503", () => Promise.reject(new ApiError("service_unavailable", "no")), "service_unavailable", 100],
    ["400", () => Promise.reject(new ApiError("validation_error", "no")), "validation_error", 100],
    ["404", () => Promise.reject(new ApiError("not_found", "no")), "not_found", 99],
    ["408", () => Promise.reject(new ApiError("timeout", "no")), "timeout", 99],
  ])(
    "%s outside: the claim stays; only 403, 404, 408 and 409 keep the charge",
    async (_, outside, outcome, balance) => {
      expect(await across(bench.request(CHARGED), { outside })).toBe(outcome);
      expect(bench.balance).toBe(balance);
      expect(bench.notes).toEqual(["claimed"]);
    },
  );

  test.each<[ErrorCode, number]>([
    ["internal_error", 100],
    ["not_found", 99],
  ])(
    "settling that writes, refunds and then rejects with %s is rolled back and charged by the rule",
    async (code, balance) => {
      const settle: Phases["settle"] = (tx, _claim, _result, refund) => {
        bench.note(tx, "half");
        refund();
        throw new ApiError(code, "refused");
      };
      expect(await across(bench.request(CHARGED), { settle })).toBe(code);
      expect(bench.balance).toBe(balance);
      expect(bench.notes).toEqual(["claimed"]);
    },
  );

  test("free requests are neither charged nor refunded", async () => {
    const settle: Phases["settle"] = (_tx, _claim, result, refund) => {
      refund();
      return { result };
    };
    expect(await across(bench.request(FREE), { settle })).toEqual(DONE);
    expect(bench.balance).toBe(100);
  });
});

describe("under an Idempotency-Key", () => {
  test("a repeat gets the first response; the network is used once", async () => {
    let calls = 0;
    const outside = async () => {
      calls += 1;
      return "response to claim";
    };
    expect(await across(bench.request(CHARGED, "key"), { outside })).toEqual(DONE);
    const repeat = await across(bench.request(CHARGED, "key"), { outside });
    expect(repeat).toEqual({ replayed: { status: 200, body: DONE } });
    expect(calls).toBe(1);
    expect(bench.balance).toBe(99);
    expect(bench.notes).toEqual(BOTH_NOTES);
  });

  test("while the first is in progress a repeat gets 409 free of charge; another key does not", async () => {
    const network = new SlowNetwork();
    const first = across(bench.request(CHARGED, "key"), network);
    await network.reached(1);
    expect(await across(bench.request(CHARGED, "key"), network)).toBe("conflict");
    expect(await across(bench.request(CHARGED, "key", { body: "other" }), network)).toBe("conflict");
    expect(await outcomeOf(bench.performing.perform(bench.request(CHARGED, "key"), () => ({})))).toBe(
      "conflict",
    );
    expect(bench.balance).toBe(99);
    expect(bench.stored).toBe(0);
    const other = across(bench.request(CHARGED, "other key"), network);
    await network.reached(2);
    network.answerAll();
    expect(await Promise.all([first, other])).toEqual([{ result: "slow answer" }, { result: "slow answer" }]);
    expect(await across(bench.request(CHARGED, "key"), network)).toEqual({
      replayed: { status: 200, body: { result: "slow answer" } },
    });
    expect(network.calls).toBe(2);
    expect(bench.balance).toBe(98);
  });

  test("of two requests in one batch, one runs and the other gets 409", async () => {
    const network = new SlowNetwork();
    const first = across(bench.request(CHARGED, "key"), network);
    const second = across(bench.request(CHARGED, "key"), network);
    expect(await second).toBe("conflict");
    network.answerAll();
    expect(await first).toEqual({ result: "slow answer" });
    expect(network.calls).toBe(1);
    expect(bench.balance).toBe(99);
  });

  test("a rejection found outside is stored with its charge and repeated", async () => {
    const outside = () => Promise.reject(new ApiError("not_found", "nobody there"));
    expect(await across(bench.request(CHARGED, "key"), { outside })).toBe("not_found");
    expect(await across(bench.request(CHARGED, "key"))).toMatchObject({
      replayed: { status: 404, body: { code: "not_found", request_id: "request-1" } },
    });
    expect(bench.balance).toBe(99);
  });

  test("a rejection found by the claim is stored in the transaction of its charge and repeated", async () => {
    const claim = () => {
      throw new ApiError("conflict", "taken");
    };
    expect(await across(bench.request(CHARGED, "key"), { claim })).toBe("conflict");
    expect(bench.storage.writer.stats.commits).toBe(1);
    expect(await across(bench.request(CHARGED, "key"))).toMatchObject({ replayed: { status: 409 } });
    expect(bench.balance).toBe(99);
    expect(bench.notes).toEqual([]);
  });

  test.each<[string, Partial<Phases>]>([
    ["a defect outside", { outside: () => Promise.reject(new TypeError("broken")) }],
    ["a 5xx outside", { outside: () => Promise.reject(new ApiError("internal_error", "no")) }],
    [
      "a defect in settling",
      {
        settle: () => {
          throw new TypeError("broken");
        },
      },
    ],
    [
      "a defect in the claim",
      {
        claim: () => {
          throw new TypeError("broken");
        },
      },
    ],
  ])("after %s the key is unused again and nothing is stored", async (_, changes) => {
    await across(bench.request(CHARGED, "key"), changes);
    expect(bench.stored).toBe(0);
    expect(bench.balance).toBe(100);
    expect(await across(bench.request(CHARGED, "key"))).toEqual(DONE);
    expect(bench.balance).toBe(99);
  });

  test("a claim that cannot be committed leaves nothing, and the key is unused", async () => {
    bench.storage.db.fault = "stays-open";
    expect(await across(bench.request(CHARGED, "key"))).toBe("read_only");
    bench.storage.db.fault = "none";
    expect(bench.balance).toBe(100);
    expect(bench.notes).toEqual([]);
    expect(await across(bench.request(CHARGED, "key"))).toEqual(DONE);
  });

  test("a claim in a batch that runs again holds its key once and releases it", async () => {
    const request = across(bench.request(CHARGED, "key"));
    const disturbing = bench.storage.writer.submit((tx) => {
      bench.note(tx, "disturbing");
      throw new Error("failed after writing");
    });
    await expect(disturbing).rejects.toThrow("failed after writing");
    expect(await request).toEqual(DONE);
    expect(bench.balance).toBe(99);
    expect(bench.notes).toEqual(BOTH_NOTES);
    expect(await across(bench.request(CHARGED, "key"))).toMatchObject({ replayed: { status: 200 } });
  });

  test("an outcome that cannot be committed is rejected with 503, and the key is unused", async () => {
    const outside = async () => {
      bench.storage.db.fault = "stays-open";
      return "lost";
    };
    expect(await across(bench.request(CHARGED, "key"), { outside })).toBe("service_unavailable");
    bench.storage.db.fault = "none";
    expect(bench.notes).toEqual(["claimed"]);
    expect(bench.stored).toBe(0);
    expect(await across(bench.request(CHARGED, "key"))).toEqual(DONE);
  });
});
