import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ApiError } from "../../../../src/kernel/errors.ts";
import type { AcrossNetwork } from "../../../../src/kernel/http/operations/perform.ts";
import { CHARGED, outcomeOf, PerformingBench } from "../operations/performing.ts";

// A request across the network whose effect depends on its claim: the stored and sent response when the outcome is
// lost.

let bench: PerformingBench;
beforeEach(() => {
  bench = new PerformingBench();
});
afterEach(() => bench.close());

type Phases = AcrossNetwork<string, string, { result: string }>;

const INTERIM = { result: "claimed, and not settled yet" };

function across(changes: Partial<Phases> = {}, key = "k"): Promise<unknown> {
  const phases: Phases = {
    claim: (tx) => {
      bench.note(tx, "claimed");
      return "claim";
    },
    interim: () => INTERIM,
    outside: async () => "answer",
    settle: (tx, _claim, result) => {
      bench.note(tx, "settled");
      return { result };
    },
    ...changes,
  };
  return outcomeOf(bench.performing.performAcross(bench.request(CHARGED, key), phases));
}

/** A network during which the disk fills up. */
const fillsDisk = async (): Promise<string> => {
  bench.storage.db.fault = "stays-open";
  return "answer";
};

describe("an outcome that cannot be recorded", () => {
  test("gets the interim response, and so does its repeat", async () => {
    expect(await across({ outside: fillsDisk })).toEqual(INTERIM);
    bench.storage.db.fault = "none";
    expect(await across()).toEqual({ replayed: { status: 200, body: INTERIM } });
    expect(bench.notes).toEqual(["claimed"]);
    expect(bench.balance).toBe(99);
  });

  test("is a 503 without an interim response", async () => {
    const phases = { claim: () => "claim", outside: fillsDisk, settle: () => INTERIM };
    const work = bench.performing.performAcross(bench.request(CHARGED), phases);
    await expect(work).rejects.toMatchObject({
      code: "service_unavailable",
      message: expect.stringContaining("its result could not be stored"),
      details: { extras: { carried_out: true } },
    });
  });
});

describe("the response under an Idempotency-Key", () => {
  test("is the interim one after the claim, and the outcome after settling", async () => {
    let storedMeanwhile = -1;
    const outside = async () => {
      storedMeanwhile = bench.stored;
      return "answer";
    };
    expect(await across({ outside })).toEqual({ result: "answer" });
    expect(storedMeanwhile).toBe(1);
    expect(await across()).toEqual({ replayed: { status: 200, body: { result: "answer" } } });
    expect(bench.notes).toEqual(["claimed", "settled"]);
  });

  test("is still a conflict while the network is used", async () => {
    let repeat: unknown;
    const outside = async () => {
      repeat = await across();
      return "answer";
    };
    await across({ outside });
    expect(repeat).toBe("conflict");
  });

  test("is the rejection of a rejected claim", async () => {
    const claim = () => {
      throw new ApiError("conflict", "There is nothing to claim.");
    };
    expect(await across({ claim })).toBe("conflict");
    expect(await across()).toMatchObject({ replayed: { status: 409 } });
  });
});
