import { describe, expect, test } from "bun:test";
import {
  COMMIT_DELAY_MS_MAX,
  CONFIRMATION_MS_MIN,
  CommitDelay,
  REQUEST_MS,
} from "../../../src/kernel/storage/commit-delay.ts";

/** The wait after batches of `units`, confirmed in `tookMs` again and again, each with so many queued at its end. */
function confirmed(units: number, queued: number, tookMs: number): CommitDelay {
  const delay = new CommitDelay();
  for (let count = 0; count < 200; count += 1) delay.confirmed(units, queued, tookMs);
  return delay;
}

describe("a batch", () => {
  test("begins immediately at first", () => {
    expect(new CommitDelay().waitMs(1)).toBe(0);
  });

  test("waits for the units that were confirmed last, and for those that have come meanwhile", () => {
    const delay = confirmed(64, 64, 10);
    expect([1, 64, 127, 128, 129].map((queued) => delay.waitMs(queued) > 0)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test("expects fewer once fewer have come", () => {
    const delay = confirmed(8, 0, 10);
    expect(delay.waitMs(3)).toBeGreaterThan(0);
    delay.confirmed(3, 0, 10);
    expect(delay.waitMs(3)).toBe(0);
  });

  test("does not wait for a single client on a slow disk", () => {
    expect(confirmed(1, 0, 100).waitMs(1)).toBe(0);
  });

  test.each([
    ["of a fast disk, not at all", CONFIRMATION_MS_MIN * 0.99, 0],
    ["of half a millisecond, as short as a timer can", CONFIRMATION_MS_MIN * 1.01, 1],
    ["of some milliseconds, as long", 3, 3],
    ["of a slow disk, at most its limit", 10, COMMIT_DELAY_MS_MAX],
    ["of one that stalls, no longer", 1_000, COMMIT_DELAY_MS_MAX],
  ])("waits by the duration of a confirmation: %s", (_name, tookMs, waitMs) => {
    expect(Math.abs(confirmed(8, 0, tookMs).waitMs(7) - waitMs)).toBeLessThan(0.01);
  });

  test("waits for nobody where their requests take longer than a confirmation", () => {
    const tookMs = 1;
    const most = tookMs / REQUEST_MS;
    expect(confirmed(most - 1, 0, tookMs).waitMs(1)).toBe(1);
    expect(confirmed(most + 1, 0, tookMs).waitMs(1)).toBe(0);
  });

  test("is hardly affected by a single slow confirmation", () => {
    const delay = confirmed(8, 0, CONFIRMATION_MS_MIN / 4);
    delay.confirmed(8, 0, 2.5);
    expect(delay.waitMs(7)).toBe(0);
  });
});
