import { beforeEach, describe, expect, test } from "bun:test";
import { ATTEMPT_KEYS_MAX, AttemptLimiter, limitClock } from "../../../../src/kernel/http/access/guard.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";

const HOUR = 60 * 60 * 1000;
let clock: ManualClock;
let limiter: AttemptLimiter;
beforeEach(() => {
  clock = new ManualClock(1_800_000_000_000);
  limiter = new AttemptLimiter(clock, 3, HOUR);
});

describe("attempt limiter", () => {
  test("lets the limit pass, and tells the next one the whole seconds until it may", async () => {
    expect(limiter.take("a")).toBe(0);
    await clock.advance(10_000);
    expect([limiter.take("a"), limiter.take("a")]).toEqual([0, 0]);
    expect(limiter.take("a")).toBe(3_590);
    await clock.advance(500);
    expect(limiter.take("a")).toBe(3_590);
    await clock.advance(500);
    expect(limiter.take("a")).toBe(3_589);
  });

  test("slides: each attempt comes back an hour after it was made, with no burst at a window's edge", async () => {
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

  test("what was refused does not count: waiting as told is enough", async () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    for (let index = 0; index < 50; index += 1) {
      await clock.advance(60_000);
      expect(limiter.take("a")).toBe(3_600 - (index + 1) * 60);
    }
    await clock.advance(10 * 60_000);
    expect(limiter.take("a")).toBe(0);
  });

  test("a wall clock that is set neither shuts anyone out for longer nor lets anyone in earlier", async () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    clock.setWall(-24 * HOUR);
    expect(limiter.take("a")).toBe(3_600);
    clock.setWall(48 * HOUR);
    expect(limiter.take("a")).toBe(3_600);
    await clock.advance(HOUR);
    expect(limiter.take("a")).toBe(0);
  });

  test("addresses are counted apart", () => {
    for (let index = 0; index < 3; index += 1) limiter.take("a");
    expect(limiter.take("a")).toBe(3_600);
    expect(limiter.take("b")).toBe(0);
  });

  test("at ATTEMPT_KEYS_MAX addresses every one is remembered; one more and the one that was longest quiet is not", () => {
    limiter = new AttemptLimiter(clock, 1, HOUR);
    for (let index = 0; index < ATTEMPT_KEYS_MAX; index += 1) limiter.take(`address ${index}`);
    expect(limiter.take("address 0")).toBe(3_600);
    expect(limiter.take("one more")).toBe(0);
    expect(limiter.take("address 1")).toBe(3_600);
    expect(limiter.take("address 0")).toBe(0);
  });

  test("the order of forgetting is that of the last attempt that was let pass", async () => {
    limiter = new AttemptLimiter(clock, 2, HOUR, 2);
    limiter.take("a");
    limiter.take("b");
    limiter.take("a");
    limiter.take("c");
    expect(limiter.take("a")).toBe(3_600);
    expect([limiter.take("b"), limiter.take("b")]).toEqual([0, 0]);
  });

  test("an address that comes again, with the memory full, costs no other its place", () => {
    limiter = new AttemptLimiter(clock, 2, HOUR, 2);
    limiter.take("a");
    limiter.take("b");
    limiter.take("b");
    expect([limiter.take("a"), limiter.take("a")]).toEqual([0, 3_600]);
  });
});

test("on a test clock, which stands until it is moved, real time counts as well", async () => {
  const still = new AttemptLimiter(limitClock(clock, false), 1, 20);
  const running = new AttemptLimiter(limitClock(clock, true), 1, 20);
  for (const one of [still, running]) expect([one.take("a"), one.take("a")]).toEqual([0, 1]);
  await Bun.sleep(30);
  expect([still.wait("a"), running.wait("a")]).toEqual([1, 0]);
  await clock.advance(20);
  expect(still.wait("a")).toBe(0);
});

test("an attempt that came to nothing is given back", () => {
  limiter = new AttemptLimiter(clock, 1, HOUR);
  expect(limiter.take("a")).toBe(0);
  limiter.release("a");
  expect([limiter.take("a"), limiter.wait("a")]).toEqual([0, 3_600]);
});
