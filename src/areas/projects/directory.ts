import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { CallerProject } from "../../kernel/callers/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectActivity } from "../../kernel/projects/activity.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { UTC } from "../../kernel/time/zone.ts";
import { PROJECT_ID_LENGTH } from "./domain.ts";
import { type ProjectRow, type ProjectStore, projectStore } from "./store.ts";

/** Projects with their last change in memory after it is written: some hundred bytes each. */
export const ACTIVITIES_IN_MEMORY_MAX = 20_000;
/** Minimum time between two writes of a project's row: what a crash can lose. */
export const ACTIVITY_WRITE_INTERVAL_MS = 60_000;
/** Rows written with one batch: a fraction of a millisecond. */
const WRITES_PER_BATCH_MAX = 100;

/** The last change of one project. */
class LastActivity implements Actor {
  writtenAt = Number.NEGATIVE_INFINITY;
  /** Latest time of the write, while one is pending. */
  dueAt = 0;
  /** False while a write is pending. */
  idle = true;
  recent = false;

  constructor(
    readonly ref: number,
    /** Epoch milliseconds; null if the project has never changed. */
    public at: number | null,
  ) {}
}

/**
 * The time of each project's last change, in memory. It is written with the next batch, but at most once a minute per
 * project, and only with a batch that is committed anyway.
 */
export class Activity implements ProjectActivity {
  private readonly entries: ActorRegistry<number, LastActivity>;
  /** To be written with this batch. */
  private readonly due: LastActivity[] = [];
  /** To be written later, in the order of `dueAt`. */
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
    else this.schedule(entry, tx.now);
  }

  /** When the project last changed, epoch milliseconds; null if never. */
  lastActivityOf(projectRef: number): number | null {
    return this.entryOf(projectRef).at;
  }

  /** Writes everything that is pending. Call before the process exits. */
  async finish(): Promise<void> {
    if (this.later.length === 0) return;
    await this.writer.submit((tx) => this.writeAll(tx, [...this.due.splice(0), ...this.later.splice(0)]));
  }

  private entryOf(ref: number): LastActivity {
    return this.entries.get(ref, () => new LastActivity(ref, this.store.lastActivity(ref) || null));
  }

  private schedule(entry: LastActivity, now: number): void {
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
        this.schedule(entry, tx.now);
      });
      // Null if the only change was rolled back.
      if (entry.at !== null) this.store.setLastActivity(tx, entry.at, entry.ref);
    }
  }
}

/**
 * Removed projects that still count as deleted: a request that started before the deletion may still refer to one. More
 * are not removed during one request.
 */
export const REMOVED_IN_MEMORY_MAX = 100_000;

type NewProject = Omit<ProjectRow, "ref" | "id" | "created_at" | "updated_at">;

/** The projects, as all other areas use them. */
export type ProjectDirectory = ReturnType<typeof openProjectDirectory>;

/** Opens the directory of projects. */
export function openProjectDirectory(kernel: Pick<Kernel, "db" | "ids" | "writer">) {
  const store = projectStore(kernel.db);
  /** Deleted projects, including those already removed. */
  const deleted = new Set(store.deleted().map(({ ref }) => ref));
  const removed: number[] = [];
  let nextRef = store.highestRef() + 1;
  const create = (tx: Tx, project: NewProject): ProjectRow => {
    const identity = { ref: nextRef++, id: `proj_${kernel.ids.base62(PROJECT_ID_LENGTH)}` };
    const row = { ...identity, ...project, created_at: tx.now, updated_at: tx.now };
    store.insert(tx, row);
    return row;
  };
  return {
    store,
    /** The id of the project with a reference; null if there is none. */
    idOf: (ref: number): string | null => store.withRef(ref)?.id ?? null,
    /** The time zone of texts for people; UTC for a project that is gone. */
    timeZoneOf: (ref: number): string => store.withRef(ref)?.time_zone ?? UTC,
    activity: new Activity(store, kernel.writer),
    create,
    /** Creates the default project of a new account. */
    createDefault: (tx: Tx, accountRef: number): CallerProject => {
      const texts = { name: "Default", slug: "default", description: null, time_zone: UTC, review: 0 };
      const { ref, id } = create(tx, { account_ref: accountRef, ...texts, is_default: 1 });
      return { ref, id };
    },
    defaultOf: (accountRef: number): CallerProject => {
      const project = store.defaultOf(accountRef);
      if (project === null) throw new Error(`account ${accountRef} has no default project`);
      return project;
    },
    /** The account's project with this id; null when there is none or it is deleted. */
    find: (accountRef: number, id: string): CallerProject | null => store.find(accountRef, id),
    /** The account of a project; null when it has been removed. */
    accountOf: (ref: number): number | null => store.accountOf(ref) || null,
    /** Whether changes of a project's flags need the approval of somebody else. */
    isReviewed: (ref: number): boolean => store.withRef(ref)?.review === 1,
    /** Whether a project has been deleted: true starting with the unit of work that deletes it. */
    isDeleted: (ref: number): boolean => deleted.has(ref),

    markDeleted: (tx: Tx, ref: number): void => {
      store.markDeleted(tx, tx.now, ref);
      deleted.add(ref);
      tx.onRollback(() => deleted.delete(ref));
    },
    /** Removes the row of a deleted project, after all of its contents. */
    remove: (tx: Tx, ref: number): void => {
      store.remove(tx, ref);
      store.recordRemoved(tx, ref);
      tx.afterCommit(() => {
        removed.push(ref);
        if (removed.length <= REMOVED_IN_MEMORY_MAX) return;
        for (const old of removed.splice(0, REMOVED_IN_MEMORY_MAX / 2)) deleted.delete(old);
      });
    },
  };
}
