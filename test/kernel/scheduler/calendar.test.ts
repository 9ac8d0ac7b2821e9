import { describe, expect, test } from "bun:test";
import {
  CronTimes,
  endOfDailyPeriod,
  isTimeZone,
  nextOccurrence,
} from "../../../src/kernel/scheduler/calendar.ts";
import { processorMs } from "../../support/processor-time.ts";

describe("calendar, in UTC regardless of the machine's time zone", () => {
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

  test("an expression that never matches is rejected", () => {
    expect(() => nextOccurrence("0 0 30 2 *", 0)).toThrow(
      'the cron expression "0 0 30 2 *" never comes true',
    );
  });

  test.each(["", "every hour", "61 * * * *", "* * * *"])("malformed: %p is rejected", (expression) => {
    expect(() => nextOccurrence(expression, 0)).toThrow();
  });
});

describe("times in a time zone", () => {
  /** The first times after a given one. */
  function timesOf(expression: string, zone: string, after: string, count: number): string[] {
    const times = new CronTimes(expression, zone);
    const found: string[] = [];
    for (let at = times.after(Date.parse(after)); at !== null && found.length < count; at = times.after(at))
      found.push(new Date(at).toISOString().replace(":00.000Z", "Z"));
    return found;
  }

  test.each([
    // Half past two does not exist on the 29th: the run is moved to three.
    [
      ...(["30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z"] as const),
      ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    ],
    // It occurs twice on the 25th, and counts once.
    [
      ...(["30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z"] as const),
      ["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    ],
    [
      ...(["0 9 * * MON#1", "America/New_York", "2026-01-01T00:00Z"] as const),
      ["2026-01-05T14:00Z", "2026-02-02T14:00Z"],
    ],
    [
      ...(["0 0 L * *", "UTC", "2026-01-01T00:00Z"] as const),
      ["2026-01-31T00:00Z", "2026-02-28T00:00Z", "2026-03-31T00:00Z"],
    ],
    [...(["0 0 29 2 *", "UTC", "2026-01-01T00:00Z"] as const), ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    [...(["@hourly", "UTC", "2026-01-01T00:30Z"] as const), ["2026-01-01T01:00Z", "2026-01-01T02:00Z"]],
    [...(["@daily", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-02T00:00Z"]],
    [...(["@weekly", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-04T00:00Z"]],
    [...(["@monthly", "UTC", "2026-01-01T00:00Z"] as const), ["2026-02-01T00:00Z"]],
    [...(["@midnight", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-02T00:00Z"]],
    [...(["@annually", "UTC", "2026-12-31T10:59Z"] as const), ["2027-01-01T00:00Z"]],
    [...(["5/25 0 * * *", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-01T00:05Z", "2026-01-01T00:30Z"]],
    // A day field that begins with a star narrows the other one: the Mondays with an odd day.
    [...(["0 0 */2 * 1", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-05T00:00Z", "2026-01-19T00:00Z"]],
    [...(["0 0 13 * *,5", "UTC", "2026-01-14T00:00Z"] as const), ["2026-02-13T00:00Z", "2026-03-13T00:00Z"]],
    // Otherwise either is enough: each 13th, and each Friday.
    [...(["0 0 13 * 5", "UTC", "2026-01-10T00:00Z"] as const), ["2026-01-13T00:00Z", "2026-01-16T00:00Z"]],
    // A week that begins on Friday ends on the Sunday that is written as 7.
    [...(["0 0 * * 5/2", "UTC", "2026-01-01T00:00Z"] as const), ["2026-01-02T00:00Z", "2026-01-04T00:00Z"]],
    // Of several fixed times, too, the one that clocks skip comes when the change is over.
    [
      ...(["30 2,14 * * *", "Europe/Berlin", "2027-03-27T14:00Z"] as const),
      ["2027-03-28T01:00Z", "2027-03-28T12:30Z"],
    ],
    // Those that clocks repeat come once, also when it is calculated from the second time that they show it.
    [
      ...(["0 2,14 * * *", "Europe/Berlin", "2027-10-31T00:00Z"] as const),
      ["2027-10-31T13:00Z", "2027-11-01T01:00Z"],
    ],
    [...(["*/20 2 * * *", "Europe/Berlin", "2027-03-27T14:00Z"] as const), ["2027-03-29T00:00Z"]],
    [
      ...(["*/30 2 * * *", "Europe/Berlin", "2027-10-31T00:00Z"] as const),
      ["2027-10-31T00:30Z", "2027-10-31T01:00Z", "2027-10-31T01:30Z", "2027-11-01T01:00Z"],
    ],
    // Clocks that change by half an hour, and at midnight.
    [
      ...(["* 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:29Z"] as const),
      ["2026-10-03T15:30Z", "2026-10-03T15:31Z"],
    ],
    [...(["*/30 1 * * 7", "America/Santiago", "2026-09-06T03:00Z"] as const), ["2026-09-06T04:00Z"]],
    // The year in the time zone differs from the year in UTC.
    [...(["@yearly", "Pacific/Auckland", "2026-12-31T10:59Z"] as const), ["2026-12-31T11:00Z"]],
    [...(["@yearly", "Pacific/Honolulu", "2027-01-01T09:59Z"] as const), ["2027-01-01T10:00Z"]],
  ])("%s in %s after %s: %p", (expression, zone, after, expected) => {
    expect(timesOf(expression, zone, after, expected.length)).toEqual(expected);
  });

  test("a millisecond before a time is before it", () => {
    const noon = Date.UTC(2026, 0, 1, 12);
    const times = new CronTimes("0 12 * * *", "UTC");
    expect([times.after(noon - 1), times.after(noon), times.after(noon + 1)]).toEqual([
      ...[noon, noon + 86_400_000, noon + 86_400_000],
    ]);
  });

  // A result holds until its time: calculated in this order, times are remembered, and in the reverse order none is.
  test.each([
    ["*/10 * * * *", "Europe/Berlin", "2026-10-25T00:00Z"],
    ["30 2 * * *", "Europe/Berlin", "2026-03-29T00:00Z"],
    ["15 1,2 * * *", "America/New_York", "2026-11-01T04:00Z"],
    ["45 1 * * *", "Australia/Lord_Howe", "2026-04-04T13:00Z"],
    ["0 0 1 1 *", "UTC", "2025-12-31T23:00Z"],
  ])("%s in %s after %s is the same in whatever order it is calculated", (expression, zone, from) => {
    const times = new CronTimes(expression, zone);
    const moments = Array.from({ length: 240 }, (_, minute) => Date.parse(from) + minute * 60_000);
    const ascending = moments.map((moment) => times.after(moment));
    const descending = moments.toReversed().map((moment) => times.after(moment));
    expect(ascending).toEqual(descending.reverse());
  });

  test("a missing next time is found fast, as null; the end of time is no error", async () => {
    const never = new CronTimes("0 0 30,31 2 *", "Europe/Berlin");
    expect(await processorMs(() => expect(never.after(0)).toBeNull())).toBeLessThan(1_000);
    expect(new CronTimes("0 0 1 1 *", "UTC").after(Date.UTC(9999, 11, 31))).toBeNull();
  });

  test.each([
    "",
    "61 * * * *",
    "* * * *",
    "0 * * * * *",
    "@reboot",
    "@noon",
    "/15 * * * *",
    "5,/15 * * * *",
    "toString",
    "2026-05-01T00:00:00",
  ])("%p is not an expression", (expression) => {
    expect(() => new CronTimes(expression, "UTC")).toThrow(RangeError);
  });

  test.each([
    ["UTC", true],
    ["Europe/Berlin", true],
    ["America/Argentina/Buenos_Aires", true],
    ["", false],
    ["Local", false],
    ["+01:00", false],
    ["Europe/Bielefeld", false],
    ["E".repeat(65), false],
  ])("%p is a zone: %p", (name, expected) => {
    expect(isTimeZone(name)).toBe(expected);
  });
});

describe("a daily period", () => {
  const at = (text: string) => Date.parse(text);
  const end = (from: number, to: number, timeZone: string, text: string) => {
    const found = endOfDailyPeriod({ from, to, timeZone }, at(text));
    return found && new Date(found).toISOString().replace(":00.000Z", "Z");
  };

  test.each([
    // 13:00 to 15:00.
    [780, 900, "UTC", "2026-03-10T12:59:59.999Z", null],
    [780, 900, "UTC", "2026-03-10T13:00:00Z", "2026-03-10T15:00Z"],
    [780, 900, "UTC", "2026-03-10T14:59:59.999Z", "2026-03-10T15:00Z"],
    [780, 900, "UTC", "2026-03-10T15:00:00Z", null],
    // 22:00 to 07:00 spans midnight.
    [1_320, 420, "UTC", "2026-12-31T21:59:59Z", null],
    [1_320, 420, "UTC", "2026-12-31T22:00:00Z", "2027-01-01T07:00Z"],
    [1_320, 420, "UTC", "2027-01-01T06:59:59Z", "2027-01-01T07:00Z"],
    [1_320, 420, "UTC", "2027-01-01T07:00:00Z", null],
    // In winter, over the change to summer time, in summer, and over the change back.
    [1_320, 420, "Europe/Berlin", "2026-03-10T21:00:00Z", "2026-03-11T06:00Z"],
    [1_320, 420, "Europe/Berlin", "2026-03-28T21:00:00Z", "2026-03-29T05:00Z"],
    [1_320, 420, "Europe/Berlin", "2026-07-10T20:00:00Z", "2026-07-11T05:00Z"],
    [1_320, 420, "Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T06:00Z"],
    // 00:00 to 02:30, which the clocks skip: it ends when they are set forward.
    [0, 150, "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:00Z"],
    [0, 150, "Europe/Berlin", "2026-03-29T01:00:00Z", null],
    // They show 02:00 to 02:30 twice.
    [0, 150, "Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T00:30Z"],
    [0, 150, "Europe/Berlin", "2026-10-25T00:45:00Z", null],
    [0, 150, "Europe/Berlin", "2026-10-25T01:15:00Z", "2026-10-25T01:30Z"],
    // 02:10 to 02:40, which is skipped altogether.
    [130, 160, "Europe/Berlin", "2026-03-29T00:59:00Z", null],
    [130, 160, "Europe/Berlin", "2026-03-29T01:20:00Z", null],
    // Days begin elsewhere, and half an hour apart.
    [1_320, 420, "Pacific/Auckland", "2026-03-10T10:00:00Z", "2026-03-10T18:00Z"],
    [1_320, 420, "Asia/Kolkata", "2026-03-10T16:30:00Z", "2026-03-11T01:30Z"],
    [1_439, 0, "UTC", "2026-03-10T23:59:30Z", "2026-03-11T00:00Z"],
    [1_320, 420, "Asia/Kathmandu", "2026-03-10T16:14:59Z", null],
    [1_320, 420, "Asia/Kathmandu", "2026-03-10T16:15:00Z", "2026-03-11T01:15Z"],
    // 02:30 to 03:30: the clocks are set back to 02:00 in the middle of it, and it begins again half an hour later.
    [150, 210, "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-25T01:00Z"],
    [150, 210, "Europe/Berlin", "2026-10-25T01:15:00Z", null],
    [150, 210, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02:30Z"],
    // 03:00 to 02:30: the only time outside of it is skipped, or comes twice.
    [180, 150, "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30Z"],
    [180, 150, "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30Z"],
    [180, 150, "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25T01:30Z"],
    // By half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30.
    [60, 135, "Australia/Lord_Howe", "2026-10-03T15:00:00Z", "2026-10-03T15:30Z"],
    [60, 135, "Australia/Lord_Howe", "2026-10-03T15:30:00Z", null],
    [0, 180, "Australia/Lord_Howe", "2026-10-03T14:00:00Z", "2026-10-03T16:00Z"],
    [60, 105, "Australia/Lord_Howe", "2026-04-04T14:30:00Z", "2026-04-04T14:45Z"],
    [60, 105, "Australia/Lord_Howe", "2026-04-04T15:00:00Z", "2026-04-04T15:15Z"],
    [0, 120, "Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T15:30Z"],
  ])("%i to %i in %s, at %s, ends at %p", (from, to, zone, text, expected) => {
    expect(end(from, to, zone, text)).toBe(expected);
  });
});

/**
 * What Debian's cron means by an expression, as the package cronsim has it: see cronsim.py. These differ:
 *
 * - `7-7/3`, a range of one with a step, which cronsim takes for `7/3`.
 * - Expressions that follow the clocks, where these change by half an hour or at midnight: cronsim steps in whole hours from
 *   a time that the clocks do not show, and so misses times that they do.
 */
const IS_RANGE_OF_ONE = /(?<![0-9])([0-9]+)-\1\//;
const ODD_CHANGES = ["America/Santiago", "Africa/Cairo", "Australia/Lord_Howe"];
const isWild = (expression: string) => expression.split(" ", 2).some((field) => field.startsWith("*"));

test("10,000 expressions in ten zones have the times of Debian's cron", async () => {
  const kept = await Bun.file(`${import.meta.dir}/cronsim.txt.gz`).bytes();
  const lines = new TextDecoder().decode(Bun.gunzipSync(kept)).trim().split("\n");
  const begin = Date.UTC(2026, 0, 1);
  const differing = lines.filter((line) => {
    const [expression = "", zone = "", start, gaps = ""] = line.split("|");
    const times = new CronTimes(expression, zone);
    let at = begin + Number(start) * 60_000;
    return gaps.split(" ").some((gap) => {
      const next = gap === "" ? null : times.after(at);
      if (next === null) return gap !== "";
      const isSame = next - at === Number(gap) * 60_000;
      at = next;
      return !isSame;
    });
  });
  const unexplained = differing.filter((line) => {
    const [expression = "", zone = ""] = line.split("|");
    return !IS_RANGE_OF_ONE.test(expression) && !(ODD_CHANGES.includes(zone) && isWild(expression));
  });
  expect(lines).toHaveLength(10_000);
  expect(unexplained).toEqual([]);
  // The explanations are no excuse for more than they explain.
  expect(differing.length).toBe(48);
});
