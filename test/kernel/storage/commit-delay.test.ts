import { describe, expect, test } from "bun:test";
import {
  COMMIT_DELAY_MS,
  COMMIT_DELAY_MS_MAX,
  COMMIT_DELAY_PART,
  CommitDelay,
} from "../../../src/kernel/storage/commit-delay.ts";

/** Duration of a commit on a fast disk. */
const QUICK_MS = 0.2;

/** A gather on a clock that the test controls, and a batch of `units` committed `times` times, each in `tookMs`. */
function fixture() {
  let now = 0;
  const gather = new CommitDelay(() => now);
  return {
    gather,
    wait: (ms: number) => {
      now += ms;
    },
    commit: (units: number, times = 1, tookMs = QUICK_MS) => {
      for (let count = 0; count < times; count += 1) {
        gather.begin();
        gather.end(units, tookMs);
      }
    },
  };
}

describe("a forming batch", () => {
  test("is committed immediately for a single client", () => {
    const { gather } = fixture();
    expect(gather.begin()(1)).toBe(true);
  });

  test("waits for as many units as the last batch had", () => {
    const { gather, commit } = fixture();
    commit(8);
    const isReady = gather.begin();
    expect([1, 7, 8, 9].map(isReady)).toEqual([false, false, true, true]);
  });

  test("waits at most its time, and expects fewer afterwards", () => {
    const { gather, wait, commit } = fixture();
    commit(8);
    const isReady = gather.begin();
    wait(COMMIT_DELAY_MS * 0.99);
    expect(isReady(3)).toBe(false);
    wait(COMMIT_DELAY_MS * 0.01);
    expect(isReady(3)).toBe(true);
    gather.end(3, QUICK_MS);
    expect(gather.begin()(3)).toBe(true);
  });

  test.each([
    ["a fast disk", COMMIT_DELAY_MS / COMMIT_DELAY_PART, COMMIT_DELAY_MS],
    ["a slow one", 10, 10 * COMMIT_DELAY_PART],
    ["the slowest that is reckoned with", COMMIT_DELAY_MS_MAX / COMMIT_DELAY_PART, COMMIT_DELAY_MS_MAX],
    ["one that stalls", 10 * COMMIT_DELAY_MS_MAX, COMMIT_DELAY_MS_MAX],
  ])("waits in proportion to the duration of commits: %s", (_name, tookMs, longestMs) => {
    const { gather, wait, commit } = fixture();
    commit(8, 200, tookMs);
    const isReady = gather.begin();
    wait(longestMs * 0.99);
    expect(isReady(7)).toBe(false);
    expect(isReady(8)).toBe(true);
    wait(longestMs * 0.0101);
    expect(isReady(7)).toBe(true);
  });

  test("is hardly affected by a single slow commit", () => {
    const { gather, wait, commit } = fixture();
    commit(8, 100);
    commit(8, 1, 10);
    const isReady = gather.begin();
    wait(COMMIT_DELAY_MS * 1.3);
    expect(isReady(7)).toBe(true);
  });

  test("does not wait for a single client on a slow disk", () => {
    const { gather, commit } = fixture();
    commit(1, 200, 10);
    expect(gather.begin()(1)).toBe(true);
  });

  test("sometimes waits its whole time to detect new clients", () => {
    const { gather, wait } = fixture();
    let waited = 0;
    for (let batch = 0; batch < 320; batch += 1) {
      const isReady = gather.begin();
      if (!isReady(1)) {
        waited += 1;
        wait(COMMIT_DELAY_MS);
        expect(isReady(1)).toBe(true);
      }
      gather.end(1, QUICK_MS);
    }
    expect(waited).toBe(10);
  });

  describe("that is confirmed", () => {
    /** A batch was confirmed, again and again, with so many units queued each time. */
    function confirmed(units: number, queued: number, confirmationMs: number) {
      const all = fixture();
      for (let count = 0; count < 200; count += 1) {
        all.commit(units);
        all.gather.confirmed(queued, confirmationMs);
      }
      return { ...all, isReady: all.gather.begin() };
    }

    test("waits for those in the last batch and for those that came meanwhile", () => {
      const { isReady } = confirmed(64, 64, 3);
      expect([64, 127, 128].map(isReady)).toEqual([false, false, true]);
    });

    test("does not wait for a single client", () => {
      expect(confirmed(1, 0, 3).isReady(1)).toBe(true);
    });

    test.each([
      ["as long as a confirmation takes", 3, 3],
      ["as long as on a slow disk", 50, COMMIT_DELAY_MS_MAX],
    ])("waits %s at most", (_name, confirmationMs, longestMs) => {
      const { isReady, wait } = confirmed(8, 8, confirmationMs);
      wait(longestMs * 0.99);
      expect(isReady(8)).toBe(false);
      wait(longestMs * 0.0101);
      expect(isReady(8)).toBe(true);
    });
  });
});
