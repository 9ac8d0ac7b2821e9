import type { UsageEntry } from "./store.ts";

/** Entries in memory, about 10 MB: those of a round of sums, and as many that come while it runs. */
export const RECENT_ENTRIES_MAX = 100_000;

/**
 * The newest entries of the ledger, so that sums of them need not read the table. It may forget entries at any time: the table
 * has them too.
 */
export class RecentEntries {
  /** In the order of their sequences. */
  private entries: UsageEntry[] = [];

  /** `after`: the last entry of the ledger before the first one that is added. */
  constructor(private after: number) {}

  /** Adds an entry, which is newer than all others. */
  add(entry: UsageEntry): void {
    if (this.entries.length >= RECENT_ENTRIES_MAX) {
      this.entries = [];
      this.after = entry.sequence - 1;
    }
    this.entries.push(entry);
  }

  /** Removes the newest entry, which is rolled back, unless it is forgotten. */
  undo(): void {
    this.entries.pop();
  }

  /**
   * Takes the entries after `after`, up to and including `through`, and forgets all before them. Null if some of these are not
   * in memory. Must be called between two batches, because those of a batch may still be rolled back.
   */
  take(after: number, through: number): readonly UsageEntry[] | null {
    if (after < this.after) return null;
    const first = this.indexAfter(after);
    const end = this.indexAfter(through);
    const taken = this.entries.slice(first, end);
    this.entries = this.entries.slice(end);
    this.after = through;
    return taken;
  }

  /** Index of the first entry with a larger sequence. */
  private indexAfter(sequence: number): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.entries[middle]?.sequence ?? 0) <= sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
