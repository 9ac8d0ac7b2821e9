import { type Cancel, realTimeout } from "../../kernel/clock.ts";
import { errorText } from "../../kernel/errors.ts";
import type { Logger } from "../../kernel/log.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { MeterActor } from "./actor.ts";
import type { MeterStore } from "./store.ts";

/** Changes after which a round begins: bounds what start-up replays, and how many meters are held in memory for it. */
export const SETTLE_AFTER_ENTRIES = 50_000;
/** Longest wait for a round when there are fewer changes. */
const SETTLE_AFTER_MS = 2_000;
/** Rows brought up to date in one unit of work: about a millisecond, so that requests get their turn in between. */
const SETTLE_SLICE = 250;

/**
 * Brings the meters' rows up to the ledger in the background. A round takes the meters changed since the last
 * one and writes their rows in slices, sorted by row, so that each page is written once; when all are done, it
 * notes the ledger's position at the round's beginning. Start-up reads the entries after that position.
 */
export class Settlement {
  private readonly store: MeterStore;
  private readonly writer: Writer;
  private readonly log: Logger;
  private readonly ledgerPosition: () => number;
  private due = new Map<number, MeterActor>();
  private inRound = new Map<number, MeterActor>();
  private round = 1;
  private changes = 0;
  private running: Promise<void> | null = null;
  private cancelTimer: Cancel | null = null;

  constructor(deps: { store: MeterStore; writer: Writer; log: Logger; ledgerPosition: () => number }) {
    this.store = deps.store;
    this.writer = deps.writer;
    this.log = deps.log;
    this.ledgerPosition = deps.ledgerPosition;
    this.writer.onCommitted(() => this.arm());
  }

  /** Takes up the entries that no round has reached: what they say is newer than the rows. */
  recover(): void {
    for (const entry of this.store.entriesSince(this.store.settledThrough())) {
      const actor = this.due.get(entry.meter_ref);
      if (actor === undefined) {
        this.mark(new MeterActor(entry.meter_ref, entry.balance_after, entry.sequence));
      } else {
        actor.balance = entry.balance_after;
        actor.lastSequence = entry.sequence;
      }
    }
  }

  /** Notes that a meter has changed, or is about to. */
  mark(actor: MeterActor): void {
    this.changes += 1;
    if (actor.dueInRound === this.round) return;
    actor.dueInRound = this.round;
    this.due.set(actor.ref, actor);
  }

  /** The actor of a meter whose row is behind: activation must use this one. */
  held(ref: number): MeterActor | undefined {
    return this.due.get(ref) ?? this.inRound.get(ref);
  }

  /** Meters whose rows are behind. */
  get behind(): number {
    return this.due.size + this.inRound.size;
  }

  /** Brings every row up to date, as far as the disk lets it; the next start does the rest. For the end of the process. */
  async finish(): Promise<void> {
    this.cancelTimer?.();
    await this.running;
    if (this.due.size > 0) await this.runOrWarn();
  }

  private arm(): void {
    if (this.running !== null || this.due.size === 0) return;
    if (this.changes >= SETTLE_AFTER_ENTRIES) {
      this.begin();
      return;
    }
    this.cancelTimer ??= realTimeout(SETTLE_AFTER_MS, () => {
      if (this.running === null) this.begin();
    });
  }

  private begin(): void {
    this.cancelTimer?.();
    this.cancelTimer = null;
    this.running = this.runOrWarn().finally(() => {
      this.running = null;
    });
  }

  private runOrWarn(): Promise<void> {
    return this.run().catch((error) =>
      this.log.warn("meters could not be settled yet", { error: errorText(error) }),
    );
  }

  /** One round. Begins between two batches, so what memory says is committed. */
  private async run(): Promise<void> {
    const position = this.ledgerPosition();
    const round = this.round;
    this.inRound = this.due;
    this.due = new Map();
    this.round += 1;
    this.changes = 0;
    try {
      const sorted = [...this.inRound.values()].sort((a, b) => a.ref - b.ref);
      for (let start = 0; start < sorted.length; start += SETTLE_SLICE) {
        const slice = sorted.slice(start, start + SETTLE_SLICE);
        await this.writer.submit((tx) => this.settleSlice(tx, slice, round));
      }
      await this.writer.submit((tx) => this.store.setSettledThrough(tx, position));
    } catch (error) {
      this.carryOver(round);
      throw error;
    } finally {
      this.inRound = new Map();
    }
  }

  private settleSlice(tx: Tx, slice: readonly MeterActor[], round: number): void {
    for (const actor of slice) {
      // A meter changed again since the round began is written as it is now; its next round finds less to do.
      this.store.settle(tx, actor.ref, actor.balance, actor.lastSequence);
    }
    tx.afterCommit(() => {
      for (const actor of slice) {
        if (actor.dueInRound === round) actor.dueInRound = 0;
      }
    });
  }

  /** A round that could not be finished leaves its meters to the next one. */
  private carryOver(round: number): void {
    for (const actor of this.inRound.values()) {
      if (actor.dueInRound !== round) continue;
      actor.dueInRound = this.round;
      this.due.set(actor.ref, actor);
    }
  }
}
