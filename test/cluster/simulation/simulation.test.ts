import { expect, test } from "bun:test";
import { IS_LONG, repeated } from "../../support/long-form.ts";
import type { EngineKind } from "./engine.ts";
import type { Outcome } from "./history.ts";
import { historyOf, live } from "./run.ts";
import type { ScenarioName } from "./scenarios.ts";

const HISTORIES = 2_000;
/** Simulated time of the long form. */
const LONG_MS = 24 * 3_600_000;
/** The first seed: another one in each long run. */
const SEED = repeated(1, Math.floor(Date.now() / 1_000));
const TEST_MS_MAX = 3_600_000;
const NONE: Outcome = { acknowledged: 0, shown: 0, elections: 0, simulatedMs: 0, longestGapMs: 0 };

// With NINEFOLD_HISTORY="chaos etcd 17" it is that history alone.
const given = process.env["NINEFOLD_HISTORY"]?.split(" ");

test(
  "the histories of a cell keep what was acknowledged, in one order, in files of its own log, and somebody takes changes whenever a node can",
  () => {
    if (given !== undefined) {
      const [scenario, engine, seed] = given as [ScenarioName, EngineKind, string];
      live({ scenario, engine, seed: Number(seed) });
      return;
    }
    let sum = NONE;
    let seed = SEED;
    while (IS_LONG ? sum.simulatedMs < LONG_MS : seed < SEED + HISTORIES) {
      sum = added(sum, live(historyOf(seed)));
      seed += 1;
    }
    const { acknowledged, shown, elections, simulatedMs, longestGapMs } = sum;
    console.info(
      `histories ${SEED} to ${seed - 1}: ${Math.round(simulatedMs / 60_000)} simulated minutes, ${acknowledged} changes acknowledged, ` +
        `${shown} reads, ${elections} elections; at most ${Math.round(longestGapMs)} ms without a change while a node could take one`,
    );
    // They reach what they are meant to test.
    expect(acknowledged).toBeGreaterThan(10 * (seed - SEED));
    expect(shown).toBeGreaterThan(10 * (seed - SEED));
    expect(elections).toBeGreaterThan(seed - SEED);
  },
  TEST_MS_MAX,
);

function added(sum: Outcome, next: Outcome): Outcome {
  return {
    acknowledged: sum.acknowledged + next.acknowledged,
    shown: sum.shown + next.shown,
    elections: sum.elections + next.elections,
    simulatedMs: sum.simulatedMs + next.simulatedMs,
    longestGapMs: Math.max(sum.longestGapMs, next.longestGapMs),
  };
}

/** Histories of other seeds that have found a fault. */
const FOUND: readonly (readonly [ScenarioName, EngineKind, number, what: string])[] = [
  [
    "cancelledWaits",
    "postgres",
    1_795_907_005,
    "a follower crashed after it had applied what the engine then lost, and led with it",
  ],
  [
    "grayFailure",
    "postgres",
    1_795_921_584,
    "a leader whose responses were lost did not know a node that had just come, and led on without confirming anything",
  ],
];

test.each(FOUND)("%s %s %i: %s", (scenario, engine, seed) => {
  live({ scenario, engine, seed });
});

test("a history happens again as it did", () => {
  for (let seed = 1; seed <= 5; seed += 1) expect(live(historyOf(seed))).toEqual(live(historyOf(seed)));
});
