/** How far the clocks of two nodes may differ. */
export const CLOCK_DIFFERENCE_MS_MAX = 5 * 60_000;

/** What is wrong with the clock of a node that differs so from the clock of this one; null if nothing is. */
export function clocksDiffer(differenceMs: number): string | null {
  if (Math.abs(differenceMs) <= CLOCK_DIFFERENCE_MS_MAX) return null;
  const [seconds, most] = [Math.abs(differenceMs), CLOCK_DIFFERENCE_MS_MAX].map((ms) =>
    Math.round(ms / 1_000),
  );
  const direction = differenceMs > 0 ? "ahead of" : "behind";
  return `Its clock is ${seconds} s ${direction} the clock of this node; at most ${most} s are allowed. Synchronize the clocks (NTP).`;
}
