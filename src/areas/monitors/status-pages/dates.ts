const DAY = { day: "numeric", month: "short", timeZone: "UTC" } as const;

const dayFormat = lazyFormat(DAY);
const timeFormat = lazyFormat({ ...DAY, hour: "2-digit", minute: "2-digit" });

/** A day as people read it, such as `10 Mar`. */
export const dayText = (epochMs: number): string => dayFormat().format(epochMs);

/** A moment as people read it, such as `10 Mar, 12:00`; UTC. */
export const timeText = (epochMs: number): string => timeFormat().format(epochMs);

/** A format that is made when it is needed: it takes ten milliseconds, which no start should wait for. */
function lazyFormat(options: Intl.DateTimeFormatOptions): () => Intl.DateTimeFormat {
  let made: Intl.DateTimeFormat | null = null;
  return () => {
    made ??= new Intl.DateTimeFormat("en-GB", options);
    return made;
  };
}
