import { slices } from "../background/time-slices.ts";
import { errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import { isStorageFailure } from "../storage/storage-failures.ts";
import type { Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import type { Scheduler } from "./scheduler.ts";

/** Rows that are removed when they expire. */
export interface Purge {
  /** Names it in the log. */
  readonly name: string;
  /** Rows removed in one step: a few milliseconds of the writer's time. */
  readonly rowsMax: number;
  /** Removes at most `rowsMax` rows. Returns how many it removed: fewer than `rowsMax` when nothing is left. */
  readonly remove: (tx: Tx, rowsMax: number) => number;
}

/** Hourly, off the full hour, when most other work begins. */
const SCHEDULE = "37 * * * *";

/**
 * The one recurring job that removes what has expired, of every area. All purges share units of work, as many steps in
 * one as fit a slice of the event loop: an hour without anything to remove is one commit. A clock that is not trusted
 * removes nothing.
 */
export class Housekeeping {
  private readonly purges: Purge[] = [];
  private readonly removals: (() => Promise<void>)[] = [];

  constructor(
    private readonly scheduler: Scheduler,
    private readonly writer: Writer,
    private readonly log: Logger,
    schedule = SCHEDULE,
  ) {
    scheduler.recurring("housekeeping", schedule, () => this.run());
  }

  /** Adds rows to remove. */
  addPurge(purge: Purge): void {
    this.purges.push(purge);
  }

  /** Adds a removal that needs units of work of its own; it runs after the purges. */
  addRemoval(remove: () => Promise<void>): void {
    this.removals.push(remove);
  }

  private async run(): Promise<void> {
    const left = new Set(this.purges);
    while (left.size > 0 && this.scheduler.clockTrust.isTrusted) {
      for (const purge of await this.writer.submit((tx) => this.step(tx, left))) left.delete(purge);
      if (left.size > 0 && slices.isOver) await slices.next();
    }
    for (const remove of this.removals) {
      if (this.scheduler.clockTrust.isTrusted) await remove();
    }
  }

  /** Runs purges until the slice is over, at least one. Returns those with nothing left, and those that failed. */
  private step(tx: Tx, left: ReadonlySet<Purge>): Purge[] {
    const finished: Purge[] = [];
    for (const purge of left) {
      if (!this.removeOf(tx, purge)) finished.push(purge);
      if (slices.isOver) break;
    }
    return finished;
  }

  /** Whether there may be more. A purge that fails does not stop the others; it is retried an hour later. */
  private removeOf(tx: Tx, { name, rowsMax, remove }: Purge): boolean {
    let failure: unknown = null;
    try {
      return tx.savepoint(() => {
        try {
          return remove(tx, rowsMax) === rowsMax;
        } catch (error) {
          failure = error;
          throw error;
        }
      });
    } catch (error) {
      // What the writer throws to run the batch again, or because the storage fails, is not the purge's.
      if (error !== failure || isStorageFailure(error)) throw error;
      this.log.error("expired rows could not be removed", { purge: name, error: errorText(error) });
      return false;
    }
  }
}
