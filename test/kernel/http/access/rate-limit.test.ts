import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RATE_BUCKETS_MAX, RateLimiter, type RateVerdict } from "../../../../src/kernel/http/access/guard.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";

const START_SECONDS = 1_800_000_000;
let clock: ManualClock;
let limiter: RateLimiter;
beforeEach(() => {
  clock = new ManualClock(START_SECONDS * 1000);
  limiter = new RateLimiter(clock);
});

/** Tries to take `times` tokens and returns the number that was granted. */
function drain(key: string, capacity: number, perMinute: number, times: number): number {
  let given = 0;
  for (let index = 0; index < times; index += 1) {
    if (limiter.take(key, capacity, perMinute).allowed) given += 1;
  }
  return given;
}

describe("token bucket", () => {
  test("starts full: allows a burst of its capacity", () => {
    expect(limiter.take("a", 60, 60)).toEqual({
      allowed: true,
      limit: 60,
      remaining: 59,
      resetAt: START_SECONDS + 1,
      retryAfterSeconds: 0,
    } satisfies RateVerdict);
    expect(drain("a", 60, 60, 100)).toBe(59);
    expect(limiter.take("a", 60, 60)).toEqual({
      allowed: false,
      limit: 60,
      remaining: 0,
      resetAt: START_SECONDS + 60,
      retryAfterSeconds: 1,
    });
  });

  test("refills continuously: a token per second at 60 a minute", async () => {
    expect(drain("a", 60, 60, 61)).toBe(60);
    await clock.advance(999);
    expect(limiter.take("a", 60, 60).allowed).toBe(false);
    await clock.advance(1);
    expect(limiter.take("a", 60, 60)).toMatchObject({ allowed: true, remaining: 0 });
    expect(limiter.take("a", 60, 60).allowed).toBe(false);
    await clock.advance(2_500);
    expect(drain("a", 60, 60, 5)).toBe(2);
    await clock.advance(500);
    expect(drain("a", 60, 60, 5)).toBe(1);
  });

  test("never has more than its capacity", async () => {
    expect(drain("a", 15, 10, 5)).toBe(5);
    await clock.advance(60 * 60 * 1000);
    expect(limiter.take("a", 15, 10).remaining).toBe(14);
    expect(drain("a", 15, 10, 100)).toBe(14);
  });

  test("has separate burst and rate: a burst of 15, then one every six seconds at 10 a minute", async () => {
    expect(drain("a", 15, 10, 30)).toBe(15);
    const refused = limiter.take("a", 15, 10);
    expect(refused).toEqual({
      allowed: false,
      limit: 15,
      remaining: 0,
      resetAt: START_SECONDS + 90,
      retryAfterSeconds: 6,
    });
    await clock.advance(1_000);
    expect(limiter.take("a", 15, 10).retryAfterSeconds).toBe(5);
    await clock.advance(4_999);
    expect(limiter.take("a", 15, 10)).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
    await clock.advance(1);
    expect(limiter.take("a", 15, 10).allowed).toBe(true);
  });

  test("a rejected request takes nothing", async () => {
    expect(drain("a", 60, 60, 1_000)).toBe(60);
    await clock.advance(60_000);
    expect(drain("a", 60, 60, 1_000)).toBe(60);
  });

  test("keys have separate buckets", () => {
    expect(drain("a", 3, 3, 10)).toBe(3);
    expect(drain("b", 3, 3, 10)).toBe(3);
    expect(limiter.size).toBe(2);
  });

  test("a wall clock that is set back does not change the level or stop the refill", async () => {
    expect(drain("a", 60, 60, 50)).toBe(50);
    clock.setWall(-60 * 60 * 1000);
    expect(limiter.take("a", 60, 60)).toMatchObject({ allowed: true, remaining: 9 });
    await clock.advance(1_000);
    expect(limiter.take("a", 60, 60)).toMatchObject({ allowed: true, remaining: 9 });
  });
});

describe("a change of tier", () => {
  test("upwards refills at the new rate from the current level", async () => {
    expect(drain("a", 60, 60, 60)).toBe(60);
    expect(limiter.take("a", 600, 600)).toMatchObject({ allowed: false, limit: 600, remaining: 0 });
    await clock.advance(1_000);
    expect(drain("a", 600, 600, 100)).toBe(10);
  });

  test("downwards reduces the level to the new capacity", () => {
    expect(drain("a", 600, 600, 10)).toBe(10);
    expect(limiter.take("a", 60, 60)).toMatchObject({ limit: 60, remaining: 59 });
    expect(drain("a", 60, 60, 600)).toBe(59);
  });
});

describe("response headers", () => {
  test("property: exactly after Retry-After one token is available, and the bucket is full at the reset", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 2_000 }),
        fc.integer({ min: 1, max: 2_000 }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 20 }),
        async (capacity, perMinute, waits) => {
          limiter = new RateLimiter(clock);
          drain("a", capacity, perMinute, capacity);
          for (const wait of waits) {
            await clock.advance(wait);
            limiter.take("a", capacity, perMinute);
          }
          let verdict = limiter.take("a", capacity, perMinute);
          while (verdict.allowed) verdict = limiter.take("a", capacity, perMinute);
          const seconds = verdict.retryAfterSeconds;
          expect(seconds).toBeGreaterThanOrEqual(1);
          if (seconds > 1) {
            await clock.advance((seconds - 1) * 1000);
            expect(limiter.take("a", capacity, perMinute).allowed).toBe(false);
            await clock.advance(1000);
          } else {
            await clock.advance(1000);
          }
          const granted = limiter.take("a", capacity, perMinute);
          expect(granted.allowed).toBe(true);
          expect(granted.resetAt * 1000).toBeGreaterThanOrEqual(clock.now());
          await clock.advance(granted.resetAt * 1000 - clock.now());
          expect(limiter.take("a", capacity, perMinute).remaining).toBe(capacity - 1);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("limit", () => {
  test("keeps RATE_BUCKETS_MAX buckets and drops the oldest above it", () => {
    for (let index = 0; index < RATE_BUCKETS_MAX; index += 1) limiter.take(`key ${index}`, 2, 2);
    expect(limiter.size).toBe(RATE_BUCKETS_MAX);
    expect(limiter.take("key 0", 2, 2)).toMatchObject({ allowed: true, remaining: 0 });
    expect(limiter.size).toBe(RATE_BUCKETS_MAX);
    limiter.take("one more", 2, 2);
    expect(limiter.size).toBe(RATE_BUCKETS_MAX);
    // Dropped, so full again; its neighbour is not.
    expect(limiter.take("key 2", 2, 2).remaining).toBe(0);
    expect(limiter.take("key 0", 2, 2).remaining).toBe(1);
  });

  test("drops full buckets first", async () => {
    limiter = new RateLimiter(clock, 10);
    // Full again only after 90 s: 15 tokens at 10 a minute.
    expect(drain("slow", 15, 10, 15)).toBe(15);
    for (let index = 1; index < 10; index += 1) limiter.take(`key ${index}`, 60, 60);
    await clock.advance(60_000);
    limiter.take("new", 60, 60);
    expect(limiter.size).toBe(2);
    // Ten tokens were refilled; a dropped bucket would have fifteen.
    expect(drain("slow", 15, 10, 30)).toBe(10);
  });

  test("an account with many buckets displaces only its own", () => {
    limiter = new RateLimiter(clock, 1_000);
    const [few, many] = [1, 2];
    for (let index = 0; index < 100; index += 1) limiter.take(`key ${index}`, 2, 2, 0, few);
    for (let index = 0; index < 5_000; index += 1) limiter.take(`key ${index}`, 2, 2, 0, many);
    expect(limiter.size).toBeLessThanOrEqual(1_000);
    for (let index = 0; index < 100; index += 1) {
      expect(limiter.take(`key ${index}`, 2, 2, 0, few).remaining).toBe(0);
    }
  });

  test("accounts with one bucket each share the space, and the oldest are dropped first", () => {
    limiter = new RateLimiter(clock, 1_000);
    for (let account = 0; account < 3_000; account += 1) limiter.take("key", 2, 2, 0, account);
    expect(limiter.size).toBeLessThanOrEqual(1_000);
    expect(limiter.take("key", 2, 2, 0, 2_999).remaining).toBe(0);
    expect(limiter.take("key", 2, 2, 0, 0).remaining).toBe(1);
  });
});
