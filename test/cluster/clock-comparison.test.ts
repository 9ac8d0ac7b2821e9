import { expect, test } from "bun:test";
import { ClockComparison } from "../../src/cluster/clock-comparison.ts";

const SECOND_MS = 1_000;
const REPORT_MS = 2 * SECOND_MS;

/** A leader whose clock is ahead, and this node, which sees its reports. */
function comparing() {
  let now = 0;
  let ahead = 30 * SECOND_MS;
  const comparison = new ClockComparison(() => now);
  return {
    comparison,
    setLeader: (aheadMs: number) => {
      ahead = aheadMs;
    },
    /** Lets the leader report a few times: each report is seen half a second after it was made. */
    report: (count: number) => {
      for (let index = 0; index < count; index += 1) {
        now += REPORT_MS;
        comparison.note(1, now - 500 + ahead, now, REPORT_MS);
      }
    },
  };
}

test("two clocks that differ are compared by what the other one writes", () => {
  const { comparison, report } = comparing();
  expect(comparison.differenceMs).toBe(0);
  report(3);
  expect(comparison.differenceMs).toBe(30_500);
});

test("a difference of less than a second is ignored", () => {
  const { comparison, report, setLeader } = comparing();
  setLeader(600);
  report(3);
  expect(comparison.differenceMs).toBe(0);
});

test.each([45, -45])("after one of them was set, only what came later counts", (seconds) => {
  const { comparison, report, setLeader } = comparing();
  report(100);
  setLeader(seconds * SECOND_MS);
  report(1);
  expect(comparison.differenceMs).toBe(seconds * SECOND_MS + 500);
});
