import type { Actor } from "../../kernel/actors/registry.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { Rounds, type WrittenLater } from "../../kernel/rounds.ts";
import type { MeterStore } from "./store.ts";

/** Changes after which balances are flushed: bounds what start-up replays, and how many meters wait in memory. */
export const FLUSH_AFTER_ENTRIES = 50_000;
/** Longest wait when there are fewer changes. */
const FLUSH_AFTER_MS = 2_000;
/** Rows written in one unit of work: about a millisecond. */
const ROWS_PER_UNIT = 250;

/** A tenant meter in memory. Every change writes the ledger; the meter's row follows now and then. */
export class MeterActor implements Actor, WrittenLater {
  recent = false;
  dueInRound = 0;

  constructor(
    readonly ref: number,
    public balance: number,
    public lastSequence: number,
  ) {}

  /** Until its row is written, the balance stands here and in the ledger alone. */
  get idle(): boolean {
    return this.dueInRound === 0;
  }
}

/** Brings the meters' rows up to the ledger in the background. */
export type BalanceFlusher = Rounds<MeterActor>;

/**
 * Builds the flusher, and takes up the entries that no round has reached: they are newer than the rows. Each round
 * notes how far the ledger went when it began; start-up reads the entries after that.
 */
export function createBalanceFlusher(
  store: MeterStore,
  { writer, log }: Pick<Kernel, "writer" | "log">,
  ledgerPosition: () => number,
): BalanceFlusher {
  const flusher: BalanceFlusher = new Rounds({
    writer,
    log,
    warning: "balances of meters could not be flushed yet",
    waitMs: FLUSH_AFTER_MS,
    marksMax: FLUSH_AFTER_ENTRIES,
    rowsPerUnit: ROWS_PER_UNIT,
    write: (tx, { ref, balance, lastSequence }) => store.saveBalance(tx, balance, lastSequence, ref),
    begun: () => {
      const position = ledgerPosition();
      return (tx) => store.setFlushedThrough(tx, position);
    },
  });
  for (const { meter_ref, balance_after, sequence } of store.entriesAfter(store.flushedThrough())) {
    const actor = flusher.held(meter_ref) ?? new MeterActor(meter_ref, 0, 0);
    actor.balance = balance_after;
    actor.lastSequence = sequence;
    flusher.hold(actor);
  }
  return flusher;
}
