import type { Tx } from "../../kernel/storage/tx.ts";
import type { LockStore } from "./store.ts";

/** Fencing tokens reserved at a time: one write in so many grants. A start skips what is left of them. */
export const FENCING_TOKENS_RESERVED = 1_000;

/**
 * The sequence of fencing tokens: one for all locks, rising for ever. That it is shared is what lets a free lock be
 * forgotten; a count per lock would have to be kept for every key that was ever used.
 *
 * The file holds the end of a reserved range. It is moved on in the transaction of the first grant beyond it, so no
 * token is ever given twice, whatever becomes of the process.
 */
export class FencingSequence {
  private last: number;
  private reservedThrough: number;

  constructor(private readonly store: LockStore) {
    this.reservedThrough = store.fencingReservedThrough();
    this.last = this.reservedThrough;
  }

  /** The next token. One that a rolled-back unit took is not given again. */
  next(tx: Tx): number {
    if (this.last >= this.reservedThrough) this.reserve(tx);
    this.last += 1;
    return this.last;
  }

  private reserve(tx: Tx): void {
    const before = this.reservedThrough;
    this.reservedThrough = this.last + FENCING_TOKENS_RESERVED;
    tx.onRollback(() => {
      this.reservedThrough = before;
    });
    this.store.reserveFencing(tx, this.reservedThrough);
  }
}
