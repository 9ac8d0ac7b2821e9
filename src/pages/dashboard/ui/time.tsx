import { ago, instant } from "../core/format.ts";
import { now } from "../core/now.ts";
import { exactTime, timeIn } from "../core/times.ts";

type At = string | number | null | undefined;

/** A relative time, with the exact time as a tooltip. */
export function Ago({ at, never = "never" }: { at: At; never?: string }) {
  if (at === null || at === undefined) return <span class="quiet">{never}</span>;
  const moment = instant(at);
  return (
    <time dateTime={new Date(moment).toISOString()} title={exactTime(moment)}>
      {ago(moment, now.value)}
    </time>
  );
}

/** An exact time in the time zone that the reader chose, with the relative time as a tooltip. */
export function DateTime({ at }: { at: At }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  const moment = instant(at);
  return (
    <time dateTime={new Date(moment).toISOString()} title={ago(moment, now.value)}>
      {exactTime(moment)}
    </time>
  );
}

/** A time of a schedule, in the time zone of the schedule, with the time of the reader as a tooltip. */
export function ZonedTime({ at, zone }: { at: At; zone: string }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  const moment = instant(at);
  return (
    <time dateTime={new Date(moment).toISOString()} title={exactTime(moment)}>
      {timeIn(zone, moment, now.value)}
    </time>
  );
}
