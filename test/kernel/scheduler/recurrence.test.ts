import { expect, test } from "bun:test";
import fc from "fast-check";
import { cron, daily, hourly, MONTHLY } from "../../../src/kernel/scheduler/recurrence.ts";

const moments = fc.integer({ min: 0, max: Date.UTC(2100, 0) });

test("recurring times are those of their cron expressions", () => {
  fc.assert(
    fc.property(moments, fc.nat(23), fc.nat(59), (after, hour, minute) => {
      for (const recurrence of [hourly(minute), daily(hour, minute), MONTHLY])
        expect(recurrence.after(after)).toBe(cron(recurrence.expression).after(after));
    }),
    { numRuns: 200 },
  );
});

test.each([
  [hourly(37), "2026-12-31T23:37:00.000Z", "2027-01-01T00:37:00.000Z"],
  [daily(0, 11), "2026-02-28T00:11:00.000Z", "2026-03-01T00:11:00.000Z"],
  [MONTHLY, "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
])("a time itself is not after it", (recurrence, after, next) => {
  expect(new Date(recurrence.after(Date.parse(after) - 1)).toISOString()).toBe(after);
  expect(new Date(recurrence.after(Date.parse(after))).toISOString()).toBe(next);
});
