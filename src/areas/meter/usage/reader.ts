import { errorText } from "../../../kernel/errors.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { monotonicMs, realDelay } from "../../../kernel/time/clock.ts";
import { HOUR_MS } from "../domain.ts";
import type { UsageRow, UsageStore } from "./store.ts";
import { addEntry, noSums } from "./sums.ts";

/** What stands for a meter in the sums of a whole project. */
export const WHOLE_PROJECT = 0;

/** Entries in a round: bounds the sums in memory. Many in one round are few rows to write, and each page once. */
export const ROUND_ENTRIES_MAX = 50_000;
/** Longest wait for a round while there are changes but not so many. */
const ROUND_EVERY_MS = 10_000;
/** Entries read at one go, in a millisecond or two, and how long requests have their turn after it. */
const ENTRIES_PER_READ = 1_000;
const PAUSE_MS = 2;
/** Rows written in one unit of work: about a millisecond. */
const ROWS_PER_UNIT = 250;

/**
 * Adds the ledger up by hour, in the background and in the order of its entries. A round notes where it will end, adds up
 * in memory what lies before that, writes the rows sorted, in slices, and notes that it is done. A round that a kill has cut
 * off is made again to the same end, and every row tells by its last entry whether it has been written.
 */
export class UsageReader {
  private rounds: Promise<void> | null = null;
  private stopping = false;
  /** A start writes nothing at once, unless very much is left: requests come first then. */
  private lastRoundAt = monotonicMs();

  constructor(
    private readonly store: UsageStore,
    private readonly kernel: Pick<Kernel, "writer" | "log">,
  ) {}

  /** Entries that no round has reached, or more: numbers that were never used count as well. */
  get behind(): number {
    return this.store.highestSequence() - this.store.through();
  }

  /** There are changes: makes a round when it is time for one. */
  changed(): void {
    const isLate = monotonicMs() - this.lastRoundAt >= ROUND_EVERY_MS;
    if (isLate || this.behind >= ROUND_ENTRIES_MAX) void this.catchUp();
  }

  /** Makes rounds until what is there now is added up, or the disk fails. */
  catchUp(): Promise<void> {
    this.rounds ??= this.read().finally(() => {
      this.rounds = null;
    });
    return this.rounds;
  }

  /** Ends the reading: what is left is for the next start. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.rounds;
  }

  private async read(): Promise<void> {
    try {
      // What comes meanwhile waits for the next time: many entries in one round are fewer pages to write.
      const last = this.store.highestSequence();
      while (!this.stopping && this.store.through() < last) await this.round();
    } catch (error) {
      this.kernel.log.warn("the ledger of meters could not be added up yet", { error: errorText(error) });
    }
  }

  private async round(): Promise<void> {
    const { store, kernel } = this;
    this.lastRoundAt = monotonicMs();
    const after = store.through();
    const begun = store.begun();
    const end = begun > after ? begun : Math.min(store.highestSequence(), after + ROUND_ENTRIES_MAX);
    if (end !== begun) await kernel.writer.submit((tx) => void store.setBegun(tx, end));
    const rows = await this.sums(after, end);
    if (this.stopping) return;
    for (let start = 0; start < rows.length; start += ROWS_PER_UNIT) {
      const slice = rows.slice(start, start + ROWS_PER_UNIT);
      await kernel.writer.submit((tx) => {
        for (const row of slice) store.add(tx, row);
      });
      if (this.stopping) return;
    }
    await kernel.writer.submit((tx) => void store.setThrough(tx, end));
  }

  /** The sums of a stretch of entries, in the order of their rows. */
  private async sums(after: number, end: number): Promise<Row[]> {
    const rows = new Map<string, Row>();
    for (let from = after; from < end && !this.stopping; from += ENTRIES_PER_READ) {
      for (const entry of this.store.between(from, Math.min(end, from + ENTRIES_PER_READ))) {
        const { project_ref, meter_ref, at } = entry;
        const hour = Math.floor(at / HOUR_MS);
        for (const ref of [meter_ref, WHOLE_PROJECT]) {
          const key = `${project_ref}/${ref}/${hour}`;
          let row = rows.get(key);
          if (row === undefined) {
            row = { project_ref, meter_ref: ref, ...noSums(hour) };
            rows.set(key, row);
          }
          addEntry(row, entry);
        }
      }
      await realDelay(PAUSE_MS);
    }
    return [...rows.values()].sort(
      (a, b) => a.project_ref - b.project_ref || a.meter_ref - b.meter_ref || a.hour - b.hour,
    );
  }
}

type Row = { -readonly [Name in keyof UsageRow]: number };
