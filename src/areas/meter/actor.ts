import type { Actor } from "../../kernel/actors/registry.ts";

/** A tenant meter in memory. The ledger is written with every change, its row only now and then. */
export class MeterActor implements Actor {
  readonly ref: number;
  recent = false;
  balance: number;
  lastSequence: number;
  /**
   * The settlement round that will bring the row up to date; 0 when it is. Until then the balance stands here and
   * in the ledger alone, so the actor must stay.
   */
  dueInRound = 0;

  constructor(ref: number, balance: number, lastSequence: number) {
    this.ref = ref;
    this.balance = balance;
    this.lastSequence = lastSequence;
  }

  get idle(): boolean {
    return this.dueInRound === 0;
  }
}
