import type { Actor } from "../../kernel/actors/registry.ts";

/** A tenant meter in memory. The ledger is written with every change, its row only now and then. */
export class MeterActor implements Actor {
  recent = false;
  /**
   * The settlement round that will bring the row up to date; 0 when it is. Until then the balance stands here and
   * in the ledger alone, so the actor must stay.
   */
  dueInRound = 0;

  constructor(
    readonly ref: number,
    public balance: number,
    public lastSequence: number,
  ) {}

  get idle(): boolean {
    return this.dueInRound === 0;
  }
}
