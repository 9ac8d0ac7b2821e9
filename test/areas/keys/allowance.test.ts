import { describe, expect, test } from "bun:test";
import { allowanceOf, nextRefillAt, remainingAt, usesView } from "../../../src/areas/keys/allowance.ts";

const at = (text: string): number => Date.parse(`${text}Z`);
const monthly = (day: number, from = "2026-01-01T00:00:00") =>
  allowanceOf({ remaining: 0, refill: { every: "month", amount: 100, day } }, at(from));

describe("a monthly refill", () => {
  test("on day 31 happens on the last day of shorter months", () => {
    const times: string[] = [];
    let now = at("2026-01-15T12:00:00");
    for (let count = 0; count < 5; count += 1) {
      now = nextRefillAt(monthly(31), now, 1) ?? 0;
      times.push(new Date(now).toISOString().slice(0, 16));
    }
    expect(times).toEqual([
      "2026-01-31T00:00",
      "2026-02-28T00:00",
      "2026-03-31T00:00",
      "2026-04-30T00:00",
      "2026-05-31T00:00",
    ]);
  });

  test.each([
    ["2026-02-27T23:59:59.999", 0],
    ["2026-02-28T00:00:00", 100],
    ["2026-03-30T23:59:59.999", 100],
  ])("at %s leaves %d", (time, left) => {
    expect(remainingAt(monthly(31, "2026-01-31T00:00:00"), at(time))).toBe(left);
  });

  test("happens on 29 February in leap years, and across the end of a year", () => {
    expect(nextRefillAt(monthly(30), at("2028-02-01T00:00:00"), 1)).toBe(at("2028-02-29T00:00:00"));
    expect(nextRefillAt(monthly(5), at("2026-12-05T00:00:00"), 1)).toBe(at("2027-01-05T00:00:00"));
    expect(remainingAt(monthly(31, "2025-12-31T00:00:00"), at("2026-01-30T00:00:00"))).toBe(0);
  });
});

describe("a refill", () => {
  const refill = { every: "day", amount: 100 } as const;
  const from = at("2026-01-01T10:00:00");
  test.each([
    [3, 100],
    [100, 100],
    [250, 250],
  ])("raises %d to %d", (remaining, left) => {
    const row = allowanceOf({ remaining, refill }, from);
    expect(remainingAt(row, from)).toBe(remaining);
    expect(remainingAt(row, at("2026-01-01T23:59:59.999"))).toBe(remaining);
    expect(remainingAt(row, at("2026-01-02T00:00:00"))).toBe(left);
    // Three months without a use are one refill.
    expect(remainingAt(row, at("2026-04-01T00:00:00"))).toBe(left);
  });

  test("happens at the next midnight; it is announced only if it provides enough uses", () => {
    const row = allowanceOf({ remaining: 0, refill }, from);
    expect(nextRefillAt(row, from, 100)).toBe(at("2026-01-02T00:00:00"));
    expect(nextRefillAt(row, from, 101)).toBe(null);
    expect(nextRefillAt(allowanceOf({ remaining: 0 }, from), from, 1)).toBe(null);
  });

  test("is not repeated after the clock is set back", () => {
    const row = allowanceOf({ remaining: 1, refill }, at("2026-01-05T00:00:00"));
    expect(remainingAt(row, at("2026-01-03T00:00:00"))).toBe(1);
    expect(remainingAt(row, at("2026-01-06T00:00:00"))).toBe(100);
  });
});

test("uses are shown as they were given", () => {
  const now = at("2026-01-01T10:00:00");
  const shown = (terms: Parameters<typeof allowanceOf>[0]) => usesView(allowanceOf(terms, now), now);
  expect(shown({ remaining: 5 })).toEqual({ remaining: 5 });
  expect(shown({ remaining: 5, refill: null })).toEqual({ remaining: 5 });
  expect(shown({ remaining: 5, refill: { every: "day", amount: 9 } })).toEqual({
    remaining: 5,
    refill: { every: "day", amount: 9 },
  });
  expect(shown({ remaining: 5, refill: { every: "month", amount: 9 } })).toEqual({
    remaining: 5,
    refill: { every: "month", amount: 9, day: 1 },
  });
});
