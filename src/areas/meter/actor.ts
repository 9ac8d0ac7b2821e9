import type { Actor } from "../../kernel/actors/registry.ts";
import type { PendingWrite } from "../../kernel/background/batched-writes.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Plan } from "./domain.ts";

/** Totals of a meter's open holds. Individual holds are read from the database. */
export interface OpenHolds {
  readonly held: number;
  readonly open: number;
  /** Lower limit of the next expiry; infinity without open holds. */
  readonly expiresFrom: number;
}

const NO_HOLDS: OpenHolds = { held: 0, open: 0, expiresFrom: Number.POSITIVE_INFINITY };

/** Optional state of a meter. Changes are rolled back with their unit of work. */
export class Extras {
  holds = NO_HOLDS;
  plan: Plan | null = null;
  /** Threshold of the meter's alert. */
  threshold: number | null = null;

  /** Time of the next possible expiry or refill. */
  get dueFrom(): number {
    return Math.min(this.holds.expiresFrom, this.plan?.nextAt ?? Number.POSITIVE_INFINITY);
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

/** A tenant meter in memory. Every change writes the ledger; the meter's row is written later. */
export class MeterActor implements Actor, PendingWrite {
  recent = false;
  dueInRound = 0;
  /** 0 until the meter is used: a start restores balances without it. */
  projectRef = 0;

  constructor(
    readonly ref: number,
    public balance: number,
    public lastSequence: number,
    /** Null: only a balance. Undefined: not loaded yet, because a start restores only balances. */
    public extras?: Extras | null,
  ) {}

  /** Not idle until its row is written: before that, only the ledger has its balance. */
  get idle(): boolean {
    return this.dueInRound === 0;
  }
}
