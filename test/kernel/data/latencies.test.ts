import { expect, test } from "bun:test";
import {
  latenciesOf,
  NO_LATENCIES,
  percentilesOf,
  sumOfLatencies,
} from "../../../src/kernel/data/latencies.ts";
import { createRandom } from "../../harness/crash/random.ts";

const SHARES = [0.5, 0.95, 0.99];

function exact(checksMs: readonly number[]): number[] {
  const sorted = checksMs.toSorted((a, b) => a - b);
  return SHARES.map((share) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
}

test("percentiles are within 5 % of the exact ones, whatever the latencies", () => {
  const random = createRandom(7);
  for (let round = 0; round < 50; round += 1) {
    const checksMs = Array.from({ length: 1 + random.below(500) }, () =>
      Math.ceil(60_000 ** (random.below(1_000) / 1_000)),
    );
    const found = percentilesOf(latenciesOf(checksMs), SHARES);
    exact(checksMs).forEach((ms, at) => {
      // Half a millisecond is lost to rounding.
      expect(Math.abs((found[at] ?? 0) - ms)).toBeLessThanOrEqual(0.05 * ms + 0.5);
    });
  }
});

test("the latencies of two periods are those of their checks, added or one after another", () => {
  const some = [3, 40, 40, 900];
  const others = [40, 41, 5_000];
  const all = percentilesOf(latenciesOf([...some, ...others]), SHARES);
  const [first, second] = [latenciesOf(some), latenciesOf(others)];
  expect(percentilesOf(sumOfLatencies(first, second), SHARES)).toEqual(all);
  expect(percentilesOf(`${first} ${second}`, SHARES)).toEqual(all);
  expect(sumOfLatencies(first, NO_LATENCIES)).toBe(first);
});

test("without a latency there is no percentile", () => {
  expect(percentilesOf(NO_LATENCIES, SHARES)).toEqual([null, null, null]);
  expect(percentilesOf(latenciesOf([0]), SHARES)).toEqual([1, 1, 1]);
});
