import { beforeEach, describe, expect, test } from "bun:test";
import { ATTEMPT_KEYS_MAX, AttemptLimiter, limitClock } from "../../../../src/kernel/http/access/guard.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";
import { until } from "../../../support/eventually.ts";

const HOUR = 60 * 60 * 1000;
let clock: ManualClock;
let limiter: AttemptLimiter;
beforeEach(() => {
  clock = new ManualClock(1_800_000_000_000);
  limiter = new AttemptLimiter(clock, 3, HOUR);
});

describe("attempt limiter", () => {
  test("allows attempts up to the limit, and returns the whole seconds until the next", async () => {
    expect(limiter.take("a")).toBe(0);
    await clock.advance(10_000);
    expect([limiter.take("a"), limiter.take("a")]).toEqual([0, 0]);
    expect(limiter.take("a")).toBe(3_590);
    await clock.advance(500);
    expect(limiter.take("a")).toBe(3_590);
    await clock.advance(500);
    expect(limiter.take("a")).toBe(3_589);
  });

  test("has a sliding window: each attempt expires an hour after it was made", async () => {
    limiter.take("a");
    await clock.advance(HOUR / 2);
    limiter.take("a");
    limiter.take("a");
    await clock.advance(HOUR / 2 - 1);
    expect(limiter.take("a")).toBe(1);
    await clock.advance(1);
    expect(limiter.take("a")).toBe(0);
    // The window now holds the two of the half hour and this one.
    expect(limiter.take("a")).toBe(1_800);
    await clock.advance(HOUR / 2);
    expect([limiter.take("a"), limiter.take("a"), limiter.take("a")]).toEqual([0, 0, 1_800]);
  });

  test("does not count rejected attempts", async () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    for (let index = 0; index < 50; index += 1) {
      await clock.advance(60_000);
      expect(limiter.take("a")).toBe(3_600 - (index + 1) * 60);
    }
    await clock.advance(10 * 60_000);
    expect(limiter.take("a")).toBe(0);
  });

  test("is not affected by changes of the wall clock", async () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    clock.setWall(-24 * HOUR);
    expect(limiter.take("a")).toBe(3_600);
    clock.setWall(48 * HOUR);
    expect(limiter.take("a")).toBe(3_600);
    await clock.advance(HOUR);
    expect(limiter.take("a")).toBe(0);
  });

  test("counts addresses separately", () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    expect(limiter.take("a")).toBe(3_600);
    expect(limiter.take("b")).toBe(0);
  });

  test("remembers ATTEMPT_KEYS_MAX addresses and drops the least recently used above it", () => {
    limiter = new AttemptLimiter(clock, 1, HOUR);
    for (let index = 0; index < ATTEMPT_KEYS_MAX; index += 1) limiter.take(`address ${index}`);
    expect(limiter.take("address 0")).toBe(3_600);
    expect(limiter.take("one more")).toBe(0);
    expect(limiter.take("address 1")).toBe(3_600);
    expect(limiter.take("address 0")).toBe(0);
  });

  test("drops addresses in the order of their last allowed attempt", async () => {
    limiter = new AttemptLimiter(clock, 2, HOUR, 2);
    limiter.take("a");
    limiter.take("b");
    limiter.take("a");
    limiter.take("c");
    expect(limiter.take("a")).toBe(3_600);
    expect([limiter.take("b"), limiter.take("b")]).toEqual([0, 0]);
  });

  test("a known address does not displace another if the memory is full", () => {
    limiter = new AttemptLimiter(clock, 2, HOUR, 2);
    limiter.take("a");
    limiter.take("b");
    limiter.take("b");
    expect([limiter.take("a"), limiter.take("a")]).toEqual([0, 3_600]);
  });
});

test("real time also counts on a test clock", async () => {
  const windowMs = 500;
  const still = new AttemptLimiter(limitClock(clock, false), 1, windowMs);
  const running = new AttemptLimiter(limitClock(clock, true), 1, windowMs);
  for (const item of [still, running]) expect([item.take("a"), item.take("a")]).toEqual([0, 1]);
  await until(() => running.wait("a") === 0);
  expect(still.wait("a")).toBe(1);
  await clock.advance(windowMs);
  expect(still.wait("a")).toBe(0);
});

test("an attempt without an effect is returned", () => {
  limiter = new AttemptLimiter(clock, 1, HOUR);
  expect(limiter.take("a")).toBe(0);
  limiter.release("a");
  expect([limiter.take("a"), limiter.wait("a")]).toEqual([0, 3_600]);
});
