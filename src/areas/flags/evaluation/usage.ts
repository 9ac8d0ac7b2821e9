import { BatchedWrites, type PendingWrite } from "../../../kernel/background/batched-writes.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { USE_RESOLUTION_MS } from "../domain.ts";
import type { FlagStore } from "../store.ts";

/** Number of evaluated flags that triggers a write, to limit the memory. */
const PENDING_USES_MAX = 50_000;
/** Longest delay of a write, in milliseconds. A crash loses at most the evaluations of this time. */
const WRITE_AFTER_MS = 5_000;
/** Rows per unit of work, less than a millisecond. */
const ROWS_PER_UNIT = 100;

/** Last evaluation of a flag that is not written yet. */
interface FlagUse extends PendingWrite {
  at: number;
  /** True after the flag's deletion; then nothing is written. */
  isDeleted: boolean;
}

/** Hours of the flags' last evaluations. Evaluations change only memory; the rows are written later by {@link BatchedWrites}. */
export class FlagUsage extends BatchedWrites<FlagUse> {
  constructor(
    private readonly store: Pick<FlagStore, "saveUse" | "removeUse">,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "flag evaluations could not be written, retrying",
      waitMs: WRITE_AFTER_MS,
      marksMax: PENDING_USES_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, at, isDeleted }) => {
        if (!isDeleted) store.saveUse(tx, ref, at);
      },
    });
  }

  /** Records an evaluation of a flag. Returns the recorded hour. */
  note(ref: number, now: number): number {
    const at = now - (now % USE_RESOLUTION_MS);
    const use = this.held(ref) ?? { ref, at, isDeleted: false, dueInRound: 0 };
    use.at = at;
    this.mark(use);
    return at;
  }

  /** Returns the last evaluation of a flag, written or not; null if there was none. */
  lastEvaluation(ref: number, written: number | null): number | null {
    return this.held(ref)?.at ?? written;
  }

  /** Removes a deleted flag. */
  forget(tx: Tx, ref: number): void {
    this.store.removeUse(tx, ref);
    const use = this.held(ref);
    if (use === undefined) return;
    use.isDeleted = true;
    tx.onRollback(() => {
      use.isDeleted = false;
    });
  }
}
