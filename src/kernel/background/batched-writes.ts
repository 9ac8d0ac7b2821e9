import { sortedBy } from "../data/sorted.ts";
import { errorText } from "../errors.ts";
import type { Logger } from "../log.ts";
import { NOBODY, type Tx } from "../storage/tx.ts";
import type { Writer } from "../storage/writer.ts";
import { type Cancel, realTimeout } from "../time/clock.ts";

/** What stands in memory first, and in its row later. */
export interface PendingWrite {
  /** The row's number. */
  readonly ref: number;
  /** The round that will write the row; 0 when the row is up to date. Only {@link BatchedWrites} sets it. */
  dueInRound: number;
}

/** What the rounds write, and when. */
export interface BatchedWritesOptions<Item extends PendingWrite> {
  readonly writer: Writer;
  readonly log: Logger;
  /** What the log says when a round fails. */
  readonly warning: string;
  /** Longest wait for a round. */
  readonly waitMs: number;
  /** Marks after which a batch starts immediately, which limits what is pending in memory. */
  readonly marksMax: number;
  /** Rows written in one unit of work: small enough that requests get their turn in between. */
  readonly rowsPerUnit: number;
  /** Writes an item's row as the item is now. */
  write(tx: Tx, item: Item): void;
  /** Called between two batches as a round begins. What it returns runs once all rows of the round are written. */
  begun?(): (tx: Tx) => void;
}

/**
 * Write-behind: items that change in memory are marked, and their rows follow in the background. A round takes the
 * items marked since the last one and writes their rows in slices, sorted by row, so that each page is written once.
 * What a failed round did not write waits for the next one.
 */
export class BatchedWrites<Item extends PendingWrite> {
  private due = new Map<number, Item>();
  private inRound = new Map<number, Item>();
  private round = 1;
  private marks = 0;
  private running: Promise<void> | null = null;
  private cancelTimer: Cancel | null = null;
  private finishing = false;

  constructor(private readonly options: BatchedWritesOptions<Item>) {}

  /** Notes that an item has changed, or is about to. */
  mark(item: Item): void {
    this.hold(item);
    // In a later microtask: a unit of work, whose changes may be rolled back, is over by then.
    if (this.marks === this.options.marksMax) queueMicrotask(() => this.begin());
    else if (this.cancelTimer === null) this.arm();
  }

  /** Notes that an item is behind since an earlier process: the first {@link mark} starts the wait for its round. */
  hold(item: Item): void {
    this.marks += 1;
    if (this.isDue(item)) return;
    item.dueInRound = this.round;
    this.due.set(item.ref, item);
  }

  /** Whether the next round will write an item: then another mark would change nothing. */
  isDue(item: Item): boolean {
    return item.dueInRound === this.round;
  }

  /** The item of a row that is behind. It must be used instead of a new one. */
  held(ref: number): Item | undefined {
    return this.due.get(ref) ?? this.inRound.get(ref);
  }

  /** Writes every row, as far as the disk lets it. For the end of the process: no round begins by itself after it. */
  async finish(): Promise<void> {
    this.finishing = true;
    this.cancelTimer?.();
    await this.running;
    if (this.due.size > 0) await this.run();
  }

  private arm(): void {
    if (this.running !== null || this.finishing || this.due.size === 0) return;
    this.cancelTimer = realTimeout(this.options.waitMs, () => this.begin());
  }

  private begin(): void {
    if (this.running !== null || this.finishing) return;
    this.cancelTimer?.();
    this.cancelTimer = null;
    this.running = this.run().finally(() => {
      this.running = null;
      if (this.marks >= this.options.marksMax) this.begin();
      else this.arm();
    });
  }

  /** One round. It begins between two batches, so what memory says is committed. */
  private async run(): Promise<void> {
    const { writer, log, warning, rowsPerUnit } = this.options;
    const sorted = sortedBy([...this.due.values()], ({ ref }) => ref);
    const round = this.round++;
    this.inRound = this.due;
    this.due = new Map();
    this.marks = 0;
    try {
      const end = this.options.begun?.();
      for (let start = 0; start < sorted.length; start += rowsPerUnit) {
        const slice = sorted.slice(start, start + rowsPerUnit);
        await writer.submit((tx) => this.write(tx, slice, round));
      }
      if (end === undefined) return;
      await writer.submit((tx) => {
        tx.affects = NOBODY;
        end(tx);
      });
    } catch (error) {
      for (const item of sorted) if (item.dueInRound === round) this.hold(item);
      // The disk gets its pause, however many items wait.
      this.marks = 0;
      log.warn(warning, { error: errorText(error) });
    } finally {
      this.inRound = new Map();
    }
  }

  private write(tx: Tx, slice: readonly Item[], round: number): void {
    tx.affects = NOBODY;
    for (const item of slice) this.options.write(tx, item);
    tx.afterCommit(() => {
      // An item marked again meanwhile stays due.
      for (const item of slice) if (item.dueInRound === round) item.dueInRound = 0;
    });
  }
}
