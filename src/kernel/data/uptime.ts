/** Checks of a period, and the time that they stood for: what an uptime is calculated from. */
export interface UptimeCounts {
  readonly checks: number;
  readonly up: number;
  /** Time that its scheduled checks stood for, each until the next one, in milliseconds. */
  readonly knownMs: number;
  /** The part of it that was up. */
  readonly upMs: number;
}

/** A part and its whole: the time up of all time, or while no time is known yet, the checks that were up of all checks. */
export function partUp(counts: readonly UptimeCounts[]): { readonly up: number; readonly of: number } {
  const sum = (of: keyof UptimeCounts) => counts.reduce((total, count) => total + count[of], 0);
  const knownMs = sum("knownMs");
  return knownMs > 0 ? { up: sum("upMs"), of: knownMs } : { up: sum("up"), of: sum("checks") };
}
