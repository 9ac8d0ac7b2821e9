import type { Actor } from "../../kernel/actors/registry.ts";
import type { WrittenLater } from "../../kernel/rounds.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Plan } from "./domain.ts";
import type { OpenHold } from "./hold-store.ts";

/** What some meters have beside a balance. */
export class Extras {
  readonly holds = new Map<number, OpenHold>();
  /** The sum of the open holds. */
  held = 0;
  plan: Plan | null = null;
  /** Of the meter's own alert. */
  threshold: number | null = null;
  /** No hold ends before this moment, though perhaps none ends at it. */
  private endsFrom = Number.POSITIVE_INFINITY;

  /** Nothing is to be done for this meter before this moment. */
  get dueFrom(): number {
    return Math.min(this.endsFrom, this.plan?.nextAt ?? Number.POSITIVE_INFINITY);
  }

  /** Takes in an open hold, or one that has changed. */
  put(hold: OpenHold): void {
    this.held += hold.amount - (this.holds.get(hold.ref)?.amount ?? 0);
    this.holds.set(hold.ref, hold);
    this.endsFrom = Math.min(this.endsFrom, hold.expires_at);
  }

  /** Lets go of a hold that has ended. */
  drop(ref: number): void {
    this.held -= this.holds.get(ref)?.amount ?? 0;
    this.holds.delete(ref);
    if (this.holds.size === 0) this.endsFrom = Number.POSITIVE_INFINITY;
  }

  /** What is held at a moment. */
  heldAt(moment: number): number {
    if (this.endsFrom > moment) return this.held;
    let held = 0;
    for (const { amount, expires_at } of this.holds.values()) if (expires_at > moment) held += amount;
    return held;
  }

  /** Lets go of the holds that are over at a moment, and says which. Looks at all, but only when the next one may end. */
  end(tx: Tx, moment: number, ended: (ref: number) => void): void {
    if (this.endsFrom > moment) return;
    let endsFrom = Number.POSITIVE_INFINITY;
    for (const { ref, expires_at } of [...this.holds.values()]) {
      if (expires_at > moment) {
        endsFrom = Math.min(endsFrom, expires_at);
        continue;
      }
      this.change(tx, ref, null);
      ended(ref);
    }
    this.endsFrom = endsFrom;
  }

  /** {@link put} and {@link drop} within a unit of work that may be taken back. `hold` null: it has ended. */
  change(tx: Tx, ref: number, hold: OpenHold | null): void {
    const before = this.holds.get(ref);
    if (hold === null) this.drop(ref);
    else this.put(hold);
    tx.onRollback(() => (before === undefined ? this.drop(ref) : this.put(before)));
  }
}

/** A tenant meter in memory. Every change writes the ledger; the meter's row follows now and then. */
export class MeterActor implements Actor, WrittenLater {
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
