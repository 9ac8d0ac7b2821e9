import { removeInSlices } from "../background/removal.ts";
import type { Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import type { Scheduler } from "./scheduler.ts";

/** One at a time, to limit the load of the disk. */
const CONCURRENCY = 1;

/** A removal that may be too large for one unit of work. */
export interface PartedRemovalOptions {
  /** The kind of the job that removes what the first part has left. */
  readonly job: string;
  /** Removes a part of what belongs to a key. Returns whether something may be left. */
  readonly removePart: (tx: Tx, key: string) => boolean;
}

/** Removes rows of something that is deleted: a first part in the unit of work that deletes it, and what is left in further ones. */
export class PartedRemoval {
  constructor(
    private readonly deps: { readonly scheduler: Scheduler; readonly writer: Writer },
    private readonly options: PartedRemovalOptions,
  ) {
    const { job, removePart } = options;
    deps.scheduler.register(job, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => {
        await removeInSlices(
          () => deps.writer.submit((tx) => removePart(tx, key)),
          // A writer that has ended rejects the next part, and the next start goes on.
          () => false,
        );
        return {};
      },
    });
  }

  /** Removes the first part. `key`: what no later deletion has, too. */
  remove(tx: Tx, key: string): void {
    const { job, removePart } = this.options;
    if (removePart(tx, key)) this.deps.scheduler.enqueue(tx, job, key, tx.now, null);
  }
}
