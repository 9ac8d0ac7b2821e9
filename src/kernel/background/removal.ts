import { monotonicMs, realDelay } from "../time/clock.ts";

/** After a slice the disk is left to others for this many times as long as the slice took. */
const PAUSE_FACTOR = 2;

/**
 * Runs a large removal in slices, with pauses in which other requests get the disk. A slice says whether there is more.
 * Returns whether nothing is left; false when `isStopping` ended it before.
 */
export async function removeInSlices(
  slice: () => Promise<boolean>,
  isStopping: () => boolean,
): Promise<boolean> {
  while (!isStopping()) {
    const startedAt = monotonicMs();
    if (!(await slice())) return true;
    await realDelay(PAUSE_FACTOR * (monotonicMs() - startedAt));
  }
  return false;
}
