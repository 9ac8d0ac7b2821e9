import { MINUTE_MS } from "../../../kernel/time/units.ts";

const DAY = { day: "numeric", month: "short", timeZone: "UTC" } as const;

const dayFormat = lazyFormat(DAY);
const weekdayFormat = lazyFormat({ weekday: "short", day: "numeric", month: "long", timeZone: "UTC" });
const clockFormat = lazyFormat({ hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const timeFormat = lazyFormat({ ...DAY, hour: "2-digit", minute: "2-digit" });

/** Formats a day in UTC, such as `10 Mar`. */
export const dayText = (epochMs: number): string => dayFormat().format(epochMs);

/** Formats a time in UTC, such as `10 Mar, 12:00`. */
export const timeText = (epochMs: number): string => timeFormat().format(epochMs);

/** Formats a day in UTC with its weekday, such as `Tue 10 March`. */
export const weekdayText = (epochMs: number): string => weekdayFormat().format(epochMs).replace(",", "");

/** Formats a time of day in UTC, such as `12:00`. */
export const clockText = (epochMs: number): string => clockFormat().format(epochMs);

const HOUR_MINUTES = 60;
const DAY_MINUTES = 24 * HOUR_MINUTES;

/** Formats a duration in its two largest units, such as `59 min`, `2 h 5 min` or `3 d 4 h`. */
export function durationText(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS);
  if (minutes < 1) return "less than a minute";
  if (minutes < HOUR_MINUTES) return `${minutes} min`;
  const [large, small, units] =
    minutes < DAY_MINUTES
      ? [Math.floor(minutes / HOUR_MINUTES), minutes % HOUR_MINUTES, ["h", "min"]]
      : [Math.floor(minutes / DAY_MINUTES), Math.floor((minutes % DAY_MINUTES) / HOUR_MINUTES), ["d", "h"]];
  return `${large} ${units[0]}${small === 0 ? "" : ` ${small} ${units[1]}`}`;
}

/** A format that is created at its first use: it takes ten milliseconds, which must not delay the start. */
function lazyFormat(options: Intl.DateTimeFormatOptions): () => Intl.DateTimeFormat {
  let format: Intl.DateTimeFormat | null = null;
  return () => {
    format ??= new Intl.DateTimeFormat("en-GB", options);
    return format;
  };
}
