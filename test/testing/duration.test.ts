import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { durationMs } from "../../src/testing/duration.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe("a duration", () => {
  test.each([
    [0, 0],
    [1_500, 1_500],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ["0s", 0],
    ["250ms", 250],
    ["90 s", 90 * SECOND],
    ["3 days", 3 * DAY],
    ["1 Day", DAY],
    ["2h30m", 2 * HOUR + 30 * MINUTE],
    ["1 hour 30 minutes", HOUR + 30 * MINUTE],
    ["1.5h", 90 * MINUTE],
    ["0.1 s", 100],
    ["2w 1d", 15 * DAY],
    ["  5 min  ", 5 * MINUTE],
    ["1 millisecond 2 seconds 3 minutes 4 hours 5 weeks", 1 + 2 * SECOND + 3 * MINUTE + 4 * HOUR + 35 * DAY],
  ])("%p is %p ms", (given, ms) => {
    expect(durationMs(given)).toBe(ms);
  });

  test.each([
    ["", '""'],
    ["90", '"90"'],
    ["days", '"days"'],
    ["3 fortnights", '"3 fortnights"'],
    ["1 month", '"1 month"'],
    ["1 constructor", '"1 constructor"'],
    ["-1s", '"-1s"'],
    ["1s,", '"1s,"'],
    ["1e3s", '"1e3s"'],
    [".5s", '".5s"'],
    ["300000 years", '"300000 years"'],
    ["99999999999999999 d", '"99999999999999999 d"'],
    [-1, "-1"],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [Number.MAX_SAFE_INTEGER + 1, "9007199254740992"],
  ])("rejects %p", (given, shown) => {
    expect(() => durationMs(given)).toThrow(
      new RangeError(
        `${shown} is not a duration: use milliseconds (0 or more), or amounts with units from ms, s, m, h, d and w, such as "3 days", "90 s" or "2h30m".`,
      ),
    );
  });

  test("is the sum of its parts in any order and with any spaces", () => {
    const units = fc.constantFrom(["ms", 1], ["s", SECOND], ["m", MINUTE], ["h", HOUR], ["d", DAY]);
    const part = fc.tuple(fc.nat(1_000), units, fc.constantFrom("", " ", "  "));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
        const text = parts.map(([amount, [unit], space]) => `${amount}${space}${unit}${space}`).join("");
        const sum = parts.reduce((total, [amount, [, ms]]) => total + amount * Number(ms), 0);
        expect(durationMs(text)).toBe(sum);
      }),
    );
  });
});
