/** `12:01 UTC`, with the date if it is not today. */
export function clockText(at: number, now: number): string {
  const [day = "", time = ""] = new Date(at).toISOString().split("T");
  const isToday = new Date(now).toISOString().startsWith(day);
  return `${isToday ? "" : `${day} `}${time.slice(0, 5)} UTC`;
}

/** A duration for people: `45 s`, `12 min`, `5 h`, `3 days`. */
export function durationText(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return `${Math.round(ms / 1_000)} s`;
  if (minutes < 120) return `${Math.round(minutes)} min`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} days`;
}
