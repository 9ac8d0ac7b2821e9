import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isoTime, parseDateTime } from "../../../src/kernel/time/date-time.ts";

describe("a date-time", () => {
  test.each([
    ["2026-03-10T12:00:00Z", "2026-03-10T12:00:00.000Z"],
    ["2026-03-10t12:00:00z", "2026-03-10T12:00:00.000Z"],
    ["2026-03-10T12:00:00.5Z", "2026-03-10T12:00:00.500Z"],
    ["2026-03-10T12:00:00.123456789Z", "2026-03-10T12:00:00.123Z"],
    ["2026-03-10T12:00:00+05:30", "2026-03-10T06:30:00.000Z"],
    ["2026-03-10T12:00:00-00:01", "2026-03-10T12:01:00.000Z"],
    ["2026-03-01T00:00:00+23:59", "2026-02-28T00:01:00.000Z"],
    ["2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000Z"],
    ["0099-12-31T00:00:00Z", "0099-12-31T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
  ])("%s is %s", (text, moment) => {
    expect(new Date(parseDateTime(text) ?? Number.NaN).toISOString()).toBe(moment);
  });

  test.each([
    ["2026-02-29T00:00:00Z", "a day that the month does not have"],
    ["2026-04-31T00:00:00Z", "another"],
    ["2026-13-01T00:00:00Z", "no month"],
    ["2026-00-10T00:00:00Z", "no month either"],
    ["2026-03-00T00:00:00Z", "no day"],
    ["2026-03-10T24:00:00Z", "no hour"],
    ["2026-03-10T12:60:00Z", "no minute"],
    ["2026-03-10T12:00:60Z", "no second"],
    ["2026-03-10T12:00:00", "no offset"],
    ["2026-03-10T12:00Z", "no seconds"],
    ["2026-03-10 12:00:00Z", "a space"],
    ["2026-03-10", "a day alone"],
    ["2026-03-10T12:00:00+24:00", "no such offset"],
    ["2026-03-10T12:00:00+00:60", "nor this one"],
    ["2026-03-10T12:00:00+0530", "an offset without its colon"],
    ["2026-03-10T12:00:00.Z", "a point with nothing behind it"],
    ["2026-03-10T12:00:00.1234567890Z", "finer than a nanosecond"],
    ["9999-12-31T23:59:59.999-00:01", "after the last time that can be written"],
    ["+10000-01-01T00:00:00Z", "a year of five digits"],
    [" 2026-03-10T12:00:00Z", "a space before it"],
    ["2026-03-10T12:00:00Z\n", "a line's end behind it"],
    ["1760000000", "a number"],
    ["tomorrow", "a word"],
    ["", "nothing"],
  ])("%j is invalid: %s", (text) => {
    expect(parseDateTime(text)).toBe(null);
  });

  test("written by this server is read as the same instant", () => {
    const times = fc.date({
      min: new Date(0),
      max: new Date("9999-12-31T23:59:59.999Z"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(times, (date) => {
        expect(parseDateTime(date.toISOString())).toBe(date.getTime());
      }),
    );
  });

  test("is written as JavaScript writes it, whatever was written before", () => {
    const nearby = fc.integer({ min: -200_000, max: 200_000 });
    const anywhere = fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 });
    fc.assert(
      fc.property(fc.array(fc.oneof(nearby, anywhere)), (times) => {
        expect(times.map(isoTime)).toEqual(times.map((time) => new Date(time).toISOString()));
      }),
    );
  });
});
