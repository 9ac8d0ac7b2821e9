import { offsetMs, UTC } from "./zone.ts";

/** `12:01 UTC`, with the date if it is not today; in another time zone `13:01 Europe/Berlin`. */
export function clockText(at: number, now: number, zone: string = UTC): string {
  const [day = "", time = ""] = localTime(at, zone).split("T");
  const isToday = localTime(now, zone).startsWith(day);
  return `${isToday ? "" : `${day} `}${time.slice(0, 5)} ${zone}`;
}

/** A time as clocks in a zone show it: `2026-03-10T13:01:00.000`. */
export function localTime(at: number, zone: string): string {
  return new Date(at + offsetMs(at, zone)).toISOString().slice(0, -1);
}

/** A duration for people: `45 s`, `12 min`, `5 h`, `3 days`. */
export function durationText(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.round(ms / 1_000)} s`;
  if (minutes < 120) return `${Math.round(minutes)} min`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} days`;
}
