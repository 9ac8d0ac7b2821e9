export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
/** A day in UTC, without leap seconds. */
export const DAY_MS = 24 * HOUR_MS;

/** Unix seconds. */
export function secondsOf(epochMs: number): number {
  return Math.floor(epochMs / SECOND_MS);
}

/** The start of the day in UTC, epoch milliseconds. */
export function dayOf(epochMs: number): number {
  return epochMs - (epochMs % DAY_MS);
}
