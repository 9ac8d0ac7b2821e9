import { monotonicMs, realDelay } from "./clock.ts";
import type { Kernel } from "./kernel.ts";
import type { Tx } from "./storage/tx.ts";

/** After a slice the disk is left to others for this many times as long as the slice took. */
const PAUSE_FACTOR = 2;

/** Rows that go by themselves when their time is over. */
export interface Purge {
  /** What the job is called. */
  readonly name: string;
  /** A cron expression in UTC, off the full hour, when most other work begins. */
  readonly schedule: string;
  /** Rows removed in one unit of work: a few milliseconds of the writer's time. */
  readonly rowsMax: number;
  /** Removes at most `rowsMax` rows. Returns how many it removed: fewer than `rowsMax` when nothing is left. */
  readonly remove: (tx: Tx, rowsMax: number) => number;
}

/**
 * Registers the removal of old rows, a slice per unit of work until a slice is not full. A clock that is not trusted
 * removes nothing.
 */
export function registerPurge(
  { scheduler, writer }: Pick<Kernel, "scheduler" | "writer">,
  purge: Purge,
): void {
  const { name, schedule, rowsMax, remove } = purge;
  scheduler.recurring(name, schedule, async () => {
    while (scheduler.clockTrust.isTrusted && (await writer.submit((tx) => remove(tx, rowsMax))) === rowsMax);
  });
}

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
