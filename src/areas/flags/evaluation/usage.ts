import { BatchedWrites, type PendingWrite } from "../../../kernel/background/batched-writes.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { USE_RESOLUTION_MS } from "../domain.ts";
import type { FlagStore } from "../store.ts";

/** Flags noted since the last round after which a round begins: bounds what is held in memory for it. */
const USES_WAITING_MAX = 50_000;
/** Longest wait for a round: what a crash can lose of the last evaluations. */
const WRITE_AFTER_MS = 5_000;
/** Rows written in one unit of work: under a millisecond. */
const ROWS_PER_UNIT = 100;

/** The last evaluation of a flag, as far as it is not written yet. */
interface FlagUse extends PendingWrite {
  at: number;
  /** Set when the flag is gone: nothing is written for it. */
  gone: boolean;
}

/** When flags were last evaluated, to the hour. An evaluation writes nothing: the rows follow in {@link BatchedWrites}. */
export class FlagUses extends BatchedWrites<FlagUse> {
  constructor(
    private readonly store: Pick<FlagStore, "saveUse" | "removeUse">,
    { writer, log }: Pick<Kernel, "writer" | "log">,
  ) {
    super({
      writer,
      log,
      warning: "evaluations of flags could not be noted yet",
      waitMs: WRITE_AFTER_MS,
      marksMax: USES_WAITING_MAX,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, at, gone }) => {
        if (!gone) store.saveUse(tx, ref, at);
      },
    });
  }

  /** Notes an evaluation of a flag. Returns the hour that is noted. */
  note(ref: number, now: number): number {
    const at = now - (now % USE_RESOLUTION_MS);
    const use = this.held(ref) ?? { ref, at, gone: false, dueInRound: 0 };
    use.at = at;
    this.mark(use);
    return at;
  }

  /** The last evaluation of a flag, written or not; null when there was none. */
  lastOf(ref: number, written: number | null): number | null {
    return this.held(ref)?.at ?? written;
  }

  /** Forgets a flag that goes. */
  forget(tx: Tx, ref: number): void {
    this.store.removeUse(tx, ref);
    const use = this.held(ref);
    if (use === undefined) return;
    use.gone = true;
    tx.onRollback(() => {
      use.gone = false;
    });
  }
}
