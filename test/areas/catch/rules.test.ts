import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ADJECTIVES, NOUNS, newBucketId } from "../../../src/areas/catch/buckets/ids.ts";
import {
  type Admission,
  admit,
  afterForward,
  isDelivered,
  NO_TRAFFIC,
  PANIC_FACTOR,
  PANIC_MS,
  TRAFFIC_WINDOW_MS,
} from "../../../src/areas/catch/domain.ts";
import { EventSequence, eventIdOf, sequenceOf } from "../../../src/areas/catch/event-ids.ts";
import { createIds } from "../../../src/kernel/ids.ts";
import type { AttemptResult } from "../../../src/kernel/outbound/retries.ts";

describe("a bucket's limit", () => {
  /** Runs requests at the given times and counts their results. */
  function outcomes(times: readonly number[], perMinute: number): Admission[] {
    let traffic = NO_TRAFFIC;
    return times.map((now) => {
      const step = admit(traffic, now, perMinute);
      traffic = step.traffic;
      return step.admission;
    });
  }
  const times = (count: number, at: number) => Array.from({ length: count }, () => at);

  test("admits requests up to the limit, then rejects them, and enters panic mode above five times the limit", () => {
    const seen = outcomes(times(16, 1_000), 3);
    expect(seen.slice(0, 3)).toEqual(["admitted", "admitted", "admitted"]);
    expect(new Set(seen.slice(3, 15))).toEqual(new Set(["rate_limited"]));
    expect(seen[15]).toBe("panic_mode");
    expect(PANIC_FACTOR * 3).toBe(15);
  });

  test("has windows that start with a request and end a minute later, to the millisecond", () => {
    expect(outcomes([500, 500, 500 + TRAFFIC_WINDOW_MS - 1, 500 + TRAFFIC_WINDOW_MS], 2)).toEqual([
      "admitted",
      "admitted",
      "rate_limited",
      "admitted",
    ]);
  });

  test("has panic modes of ten minutes that requests do not prolong", () => {
    expect(PANIC_MS).toBe(600_000);
    const panic = times(6, 0);
    const during = [1, 300_000, PANIC_MS - 1];
    const seen = outcomes([...panic, ...during, PANIC_MS, PANIC_MS], 1);
    expect(seen.slice(5, 9)).toEqual(["panic_mode", "panic_mode", "panic_mode", "panic_mode"]);
    expect(seen.slice(9)).toEqual(["admitted", "rate_limited"]);
  });

  test("is not prolonged when the wall clock is set back", () => {
    expect(outcomes([...times(6, 1_000_000), 999_999], 1).at(-1)).toBe("admitted");
    expect(outcomes([1_000_000, 999_999], 1)).toEqual(["admitted", "admitted"]);
  });

  test("admits no more than the limit in any window", () => {
    const steps = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (gaps, perMinute) => {
        let now = 0;
        const moments = gaps.map((gap) => (now += gap));
        const admitted = outcomes(moments, perMinute).flatMap((seen, index) =>
          seen === "admitted" ? [moments[index] ?? 0] : [],
        );
        // Fixed windows: any minute overlaps at most two of them.
        for (const from of admitted) {
          const within = admitted.filter((at) => at >= from && at < from + TRAFFIC_WINDOW_MS).length;
          expect(within).toBeLessThanOrEqual(2 * perMinute);
        }
      }),
    );
  });
});

describe("the next step after an attempt", () => {
  const at = 1_000_000;
  const result = (status: number | null, retryAfter?: string): AttemptResult => {
    const failure = status === null ? { kind: "blocked", message: "private" } : null;
    return { status, failure, retryAfter, finishedAt: at };
  };

  test("2xx is delivered, at any attempt", () => {
    for (const number of [1, 2, 3, 4])
      expect(afterForward(null, number, result(200), 0)).toEqual({ kind: "delivered" });
    expect([199, 200, 204, 299, 300, 301, 404, 500].filter(isDelivered)).toEqual([200, 204, 299]);
  });

  test.each([500, 410, 404, null])(
    "by default, %p is repeated after exactly 1, 5 and 25 s, and then failed",
    (status) => {
      const steps = [1, 2, 3, 4].map((number) => afterForward(null, number, result(status, "60"), 0.9));
      expect(steps.map((step) => (step.kind === "retry" ? step.at - at : step.kind))).toEqual([
        1_000,
        5_000,
        25_000,
        "failed",
      ]);
    },
  );

  test("a retry schedule applies the rules of endpoints: jitter, Retry-After, and final failures", () => {
    const waits = [5_000, 300_000];
    const next = (number: number, one: AttemptResult, fraction = 0.5) => {
      const step = afterForward(waits, number, one, fraction);
      return step.kind === "retry" ? step.at - at : step.kind;
    };
    expect([1, 2, 3].map((number) => next(number, result(500)))).toEqual([5_000, 300_000, "failed"]);
    expect([next(1, result(404), 0), next(1, result(404), 1)]).toEqual([4_500, 5_500]);
    expect(next(1, result(503, "60"))).toBe(60_000);
    expect([next(1, result(410)), next(1, result(null))]).toEqual(["failed", "failed"]);
  });
});

describe("event ids", () => {
  test("sort as text in the order of receipt, also within a millisecond and when the clock is set back", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4e12 }), { minLength: 2, maxLength: 50 }), (moments) => {
        const sequence = new EventSequence(0);
        const ids = moments.map((now) => eventIdOf(sequence.next(now)));
        expect(ids.toSorted()).toEqual(ids);
        expect(new Set(ids).size).toBe(ids.length);
        for (const id of ids) expect(eventIdOf(sequenceOf(id) ?? -1)).toBe(id);
      }),
    );
  });

  test("continue above the stored ones", () => {
    const sequence = new EventSequence(5_000_000);
    expect(sequence.next(1)).toBe(5_000_001);
    expect(sequence.last).toBe(5_000_001);
  });

  test.each([
    "",
    "evt_",
    "evt_0000000000",
    "evt_000000000000",
    "evt_0000000000w",
    "EVT_00000000000",
    "evt_vvvvvvvvvvv",
    "evt_0000000000A",
  ])("%p is invalid", (text) => {
    expect(sequenceOf(text)).toBeNull();
  });
});

describe("bucket ids", () => {
  test("use at least 200 adjectives and 200 nouns, without duplicates", () => {
    for (const words of [ADJECTIVES, NOUNS]) {
      expect(words.length).toBeGreaterThanOrEqual(200);
      expect(new Set(words).size).toBe(words.length);
      expect(words.filter((word) => !/^[a-z]{2,12}$/.test(word))).toEqual([]);
    }
  });

  test("have an adjective, a noun, and a number of six digits, from the whole range", () => {
    const ids = createIds(() => 0);
    const made = Array.from({ length: 5_000 }, () => newBucketId(ids));
    expect(made.filter((id) => !/^[a-z]+-[a-z]+-[1-9]\d{5}$/.test(id))).toEqual([]);
    expect(new Set(made.map((id) => id.split("-")[0])).size).toBe(ADJECTIVES.length);
    expect(new Set(made.map((id) => id.split("-")[1])).size).toBe(NOUNS.length);
    expect(new Set(made).size).toBeGreaterThan(4_990);
  });
});
