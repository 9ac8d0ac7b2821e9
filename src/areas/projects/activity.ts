import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import type { ProjectStore } from "./store.ts";

/** Projects whose last change stays in memory after it is written: some hundred bytes each. */
export const ACTIVITIES_IN_MEMORY_MAX = 20_000;
/** A project's row is written at most once in this time: what a crash can lose. */
export const ACTIVITY_WRITE_INTERVAL_MS = 60_000;
/** Rows written with one batch: a fraction of a millisecond. */
const WRITES_PER_BATCH_MAX = 100;

/** The last change of one project. */
class LastActivity implements Actor {
  writtenAt = Number.NEGATIVE_INFINITY;
  /** When it is written at the latest, while it waits for that. */
  dueAt = 0;
  /** False while it waits to be written. */
  idle = true;
  recent = false;

  constructor(
    readonly ref: number,
    /** Epoch milliseconds; null when there has been none. */
    public at: number | null,
  ) {}
}

/**
 * When each project last changed. Kept in memory; the row follows at once after a quiet time, and within a minute
 * while changes keep coming, always with a batch that is committed anyway.
 */
export class Activity implements ProjectActivity {
  private readonly entries: ActorRegistry<number, LastActivity>;
  /** Written with this batch. */
  private readonly due: LastActivity[] = [];
  /** Written later, in the order in which they fall due. */
  private readonly later: LastActivity[] = [];

  constructor(
    private readonly store: ProjectStore,
    private readonly writer: Writer,
    inMemoryMax: number = ACTIVITIES_IN_MEMORY_MAX,
  ) {
    this.entries = new ActorRegistry(inMemoryMax);
    writer.beforeCommit((tx) => this.writeDue(tx));
  }

  changed(tx: Tx, projectRef: number): void {
    const entry = this.entryOf(projectRef);
    const before = entry.at;
    // Everything in one batch happens at the same time.
    if (before === tx.now) return;
    entry.at = tx.now;
    tx.onRollback(() => {
      entry.at = before;
    });
    if (!entry.idle) return;
    entry.idle = false;
    if (tx.now - entry.writtenAt >= ACTIVITY_WRITE_INTERVAL_MS) this.due.push(entry);
    else this.wait(entry, tx.now);
  }

  /** When the project last changed, epoch milliseconds; null when it never did. */
  lastOf(projectRef: number): number | null {
    return this.entryOf(projectRef).at;
  }

  /** Writes everything down. For the end of the process. */
  async finish(): Promise<void> {
    if (this.later.length === 0) return;
    await this.writer.submit((tx) => this.writeAll(tx, [...this.due.splice(0), ...this.later.splice(0)]));
  }

  private entryOf(ref: number): LastActivity {
    return this.entries.get(ref, () => new LastActivity(ref, this.store.lastActivity(ref) || null));
  }

  private wait(entry: LastActivity, now: number): void {
    entry.dueAt = now + ACTIVITY_WRITE_INTERVAL_MS;
    this.later.push(entry);
  }

  private writeDue(tx: Tx): void {
    const { due, later } = this;
    let count = 0;
    while (count < WRITES_PER_BATCH_MAX && (later[count]?.dueAt ?? Number.POSITIVE_INFINITY) <= tx.now)
      count += 1;
    if (count > 0) due.push(...later.splice(0, count));
    if (due.length > 0) this.writeAll(tx, due.splice(0, WRITES_PER_BATCH_MAX));
  }

  private writeAll(tx: Tx, entries: readonly LastActivity[]): void {
    for (const entry of entries) {
      const { writtenAt } = entry;
      entry.idle = true;
      entry.writtenAt = tx.now;
      tx.onRollback(() => {
        entry.writtenAt = writtenAt;
        if (!entry.idle) return;
        entry.idle = false;
        this.wait(entry, tx.now);
      });
      // Null when the only change was taken back.
      if (entry.at !== null) this.store.setLastActivity(tx, entry.at, entry.ref);
    }
  }
}
