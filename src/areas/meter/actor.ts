import type { Actor } from "../../kernel/actors/registry.ts";
import type { PendingWrite } from "../../kernel/background/batched-writes.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Plan } from "./domain.ts";

/** The open holds of a meter together: single ones are read from the file. */
export interface OpenHolds {
  readonly held: number;
  readonly open: number;
  /** None ends before this moment, though perhaps none ends at it; infinity where there is none. */
  readonly endsFrom: number;
}

const NO_HOLDS: OpenHolds = { held: 0, open: 0, endsFrom: Number.POSITIVE_INFINITY };

/** What some meters have beside a balance. Changes are taken back with their unit of work. */
export class Extras {
  holds = NO_HOLDS;
  plan: Plan | null = null;
  /** Of the meter's own alert. */
  threshold: number | null = null;

  /** Nothing is to be done for this meter before this moment. */
  get dueFrom(): number {
    return Math.min(this.holds.endsFrom, this.plan?.nextAt ?? Number.POSITIVE_INFINITY);
  }

  setHolds(tx: Tx, holds: OpenHolds): void {
    const before = this.holds;
    this.holds = holds;
    tx.onRollback(() => {
      this.holds = before;
    });
  }

  setPlan(tx: Tx, plan: Plan | null): void {
    const before = this.plan;
    this.plan = plan;
    tx.onRollback(() => {
      this.plan = before;
    });
  }

  setThreshold(tx: Tx, threshold: number | null): void {
    const before = this.threshold;
    this.threshold = threshold;
    tx.onRollback(() => {
      this.threshold = before;
    });
  }
}

/** A tenant meter in memory. Every change writes the ledger; the meter's row follows now and then. */
export class MeterActor implements Actor, PendingWrite {
  recent = false;
  dueInRound = 0;

  constructor(
    readonly ref: number,
    public balance: number,
    public lastSequence: number,
    /** Null: it has nothing but its balance. Undefined until that is known: a start takes up balances alone. */
    public extras?: Extras | null,
  ) {}

  /** Until its row is written, the balance stands here and in the ledger alone. */
  get idle(): boolean {
    return this.dueInRound === 0;
  }
}
