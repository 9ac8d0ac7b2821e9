import { describe, expect, test } from "bun:test";
import { COMMIT_DELAY_MS_MAX, CommitDelay } from "../../../src/kernel/storage/writer.ts";

/** A gather on a clock of the test's own, and a batch of `units` committed `times` times. */
function fixture() {
  let now = 0;
  const gather = new CommitDelay(() => now);
  return {
    gather,
    wait: (ms: number) => {
      now += ms;
    },
    commit: (units: number, times = 1) => {
      for (let count = 0; count < times; count += 1) {
        gather.begin();
        gather.end(units);
      }
    },
  };
}

describe("a batch that forms", () => {
  test("is committed at once for a lone client", () => {
    const { gather } = fixture();
    expect(gather.begin()(1)).toBe(true);
  });

  test("waits for as many units as the last one had", () => {
    const { gather, commit } = fixture();
    commit(8);
    const isReady = gather.begin();
    expect([1, 7, 8, 9].map(isReady)).toEqual([false, false, true, true]);
  });

  test("waits no longer than its time, and wants fewer from then on", () => {
    const { gather, wait, commit } = fixture();
    commit(8);
    const isReady = gather.begin();
    wait(COMMIT_DELAY_MS_MAX * 0.99);
    expect(isReady(3)).toBe(false);
    wait(COMMIT_DELAY_MS_MAX * 0.01);
    expect(isReady(3)).toBe(true);
    gather.end(3);
    expect(gather.begin()(3)).toBe(true);
  });

  test("now and then waits its whole time, to find out about new clients", () => {
    const { gather, wait } = fixture();
    let waited = 0;
    for (let batch = 0; batch < 320; batch += 1) {
      const isReady = gather.begin();
      if (!isReady(1)) {
        waited += 1;
        wait(COMMIT_DELAY_MS_MAX);
        expect(isReady(1)).toBe(true);
      }
      gather.end(1);
    }
    expect(waited).toBe(10);
  });
});
