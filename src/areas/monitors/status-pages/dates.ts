const DAY = { day: "numeric", month: "short", timeZone: "UTC" } as const;

const dayFormat = lazyFormat(DAY);
const timeFormat = lazyFormat({ ...DAY, hour: "2-digit", minute: "2-digit" });

/** Formats a day in UTC, such as `10 Mar`. */
export const dayText = (epochMs: number): string => dayFormat().format(epochMs);

/** Formats a time in UTC, such as `10 Mar, 12:00`. */
export const timeText = (epochMs: number): string => timeFormat().format(epochMs);

/** A format that is created at its first use: it takes ten milliseconds, which must not delay the start. */
function lazyFormat(options: Intl.DateTimeFormatOptions): () => Intl.DateTimeFormat {
  let format: Intl.DateTimeFormat | null = null;
  return () => {
    format ??= new Intl.DateTimeFormat("en-GB", options);
    return format;
  };
}
