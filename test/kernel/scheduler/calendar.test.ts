import { describe, expect, test } from "bun:test";
import { nextOccurrence } from "../../../src/kernel/scheduler/calendar.ts";

describe("calendar, in UTC whatever the machine's time zone", () => {
  test.each([
    ["17 * * * *", "2026-03-10T12:00:00.000Z", "2026-03-10T12:17:00.000Z"],
    ["17 * * * *", "2026-03-10T12:17:00.000Z", "2026-03-10T13:17:00.000Z"],
    ["17 * * * *", "2026-03-10T12:16:59.999Z", "2026-03-10T12:17:00.000Z"],
    ["0 0 1 * *", "2026-03-10T12:00:00.000Z", "2026-04-01T00:00:00.000Z"],
    ["0 0 1 * *", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00.000Z"],
    ["0 0 29 2 *", "2026-03-10T12:00:00.000Z", "2028-02-29T00:00:00.000Z"],
    // Half past two on the night in which many clocks jump from two to three.
    ["30 2 * * *", "2026-03-29T00:00:00.000Z", "2026-03-29T02:30:00.000Z"],
  ])("%s after %s is %s", (expression, after, expected) => {
    expect(new Date(nextOccurrence(expression, Date.parse(after))).toISOString()).toBe(expected);
  });

  test("what never comes true is refused", () => {
    expect(() => nextOccurrence("0 0 30 2 *", 0)).toThrow(
      'the cron expression "0 0 30 2 *" never comes true',
    );
  });

  test.each(["", "every hour", "61 * * * *", "* * * *"])("malformed: %p is refused", (expression) => {
    expect(() => nextOccurrence(expression, 0)).toThrow();
  });
});
