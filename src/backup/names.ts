const SCHEDULED = /^ninefold-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/;

/** `20261121T030000Z`, UTC. */
export function compactTime(epochMs: number): string {
  const [toSeconds] = new Date(epochMs).toISOString().split(".");
  return `${toSeconds?.replaceAll(/[-:]/g, "")}Z`;
}

/** The file name of a scheduled backup: `ninefold-20261121T030000Z.db`. Names sort by time. */
export function scheduledName(epochMs: number): string {
  return `ninefold-${compactTime(epochMs)}.db`;
}

/** When a scheduled backup was made, epoch milliseconds; null for a file that is none. */
export function timeOfScheduled(name: string): number | null {
  const [, year, month, day, hour, minute, second] = SCHEDULED.exec(name) ?? [];
  if (second === undefined) return null;
  const time = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hour),
    Number(minute),
    Number(second),
  );
  // A thirteenth month is no time: that file is somebody else's.
  return scheduledName(time) === name ? time : null;
}
