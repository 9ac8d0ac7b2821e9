import { signal } from "@preact/signals";

/** Whether times are shown in UTC instead of the reader's time zone. */
export const inUtc = signal(false);

type Format = Readonly<Intl.DateTimeFormatOptions>;

const DAY = { day: "numeric", month: "short" } as const;
const CLOCK = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const EXACT: Format = { ...DAY, year: "numeric", ...CLOCK, second: "2-digit", timeZoneName: "short" };
const SHORT: Format = { ...DAY, ...CLOCK, timeZoneName: "short" };

/** Making a format takes longer than using it. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatted(at: number, format: Format, zone = inUtc.value ? "UTC" : undefined): string {
  const key = JSON.stringify([format, zone]);
  let found = formats.get(key);
  if (found === undefined) {
    const timeZone = zone === undefined ? {} : { timeZone: zone };
    found = new Intl.DateTimeFormat("en-GB", { ...format, ...timeZone });
    formats.set(key, found);
  }
  return found.format(at);
}

/** `23 Dec 2026, 22:37:04 CET`: a time, epoch milliseconds, in the time zone that the reader chose. */
export function exactTime(at: number): string {
  return formatted(at, EXACT);
}

/** `23 Dec, 22:37 CET`. */
export function shortTime(at: number): string {
  return formatted(at, SHORT);
}

/** `23 Dec`; of a day that is counted in UTC, also that day elsewhere. */
export function dayText(at: number, isUtcDay = false): string {
  return formatted(at, DAY, isUtcDay ? "UTC" : undefined);
}

/** `22:37`, or with seconds `22:37:04`: for an axis, whose other times name the zone. */
export function clockText(at: number, withSeconds = false): string {
  return formatted(at, withSeconds ? { ...CLOCK, second: "2-digit" } : CLOCK);
}

/** `02:30 Berlin`, on another day than `now` `24 Dec, 02:30 Berlin`: a time of a schedule, in the zone of the schedule. */
export function timeIn(zone: string, at: number, now: number): string {
  const isToday = formatted(at, EXACT, zone).slice(0, DATE) === formatted(now, EXACT, zone).slice(0, DATE);
  const city = zone.slice(zone.lastIndexOf("/") + 1).replaceAll("_", " ");
  return `${formatted(at, isToday ? CLOCK : { ...DAY, ...CLOCK }, zone)} ${city}`;
}

/** Length of the date in an exact time. */
const DATE = "23 Dec 2026".length;
