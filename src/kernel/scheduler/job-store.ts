import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";

/** A job as it stands in the table. */
export interface JobRow {
  readonly id: number;
  readonly kind: string;
  /** Names the job within its kind; empty for one without a key. */
  readonly key: string;
  /** When it is to run, epoch milliseconds. */
  readonly dueAt: number;
  readonly payload: string;
  /** How many times it has been tried before. */
  readonly attempt: number;
}

/** Where a job stands in the order of due times: what the search for due jobs reads of it. */
export interface JobPosition {
  readonly id: number;
  readonly dueAt: number;
  readonly lane: string;
}

/** What a new job's row holds. */
export interface NewJob {
  readonly kind: string;
  /** Null: nothing can replace it. */
  readonly key: string | null;
  readonly dueAt: number;
  readonly lane: string;
  readonly payload: string;
}

/** The lanes from the first name until before the second. */
export type LaneRange = readonly [from: string, to: string];

const COLUMNS = "id, kind, coalesce(key, '') AS key, due_at AS dueAt, payload, attempt";
const POSITION = "id, due_at AS dueAt, lane";

/** All SQL of the job table. */
export class JobStore {
  /** Jobs in the table, by kind: counted once, and updated with every commit. */
  readonly rows: Map<string, number>;
  readonly find;
  /** The job of an id, or null when it has been cancelled or replaced. */
  readonly job;
  /** How many jobs of a kind are due, running ones included; `limit` at most. */
  readonly due;
  /** The earliest due time after `now` of a job of this kind, or null. */
  readonly earliestAfter;
  private readonly sql: ReturnType<typeof statements>;
  private readonly origins = new DueOrigins();
  private nextId: number;

  constructor(db: Database) {
    this.sql = statements(db);
    this.find = db.one<JobRow, [kind: string, key: string]>(
      `SELECT ${COLUMNS} FROM jobs WHERE kind = ? AND key = ?`,
    );
    this.job = db.one<JobRow, [id: number]>(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`);
    this.due = db.number<[kind: string, now: number, limit: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE kind = ? AND due_at <= ? LIMIT ?)",
    );
    this.earliestAfter = db.one<{ dueAt: number }, [kind: string, now: number]>(
      "SELECT due_at AS dueAt FROM jobs WHERE kind = ? AND due_at > ? ORDER BY due_at LIMIT 1",
    );
    this.nextId = db.number("SELECT max(id) AS n FROM jobs")() + 1;
    const kinds = db.all<{ kind: string; jobs: number }>(
      "SELECT kind, count(*) AS jobs FROM jobs GROUP BY kind",
    );
    this.rows = new Map(kinds().map(({ kind, jobs }) => [kind, jobs]));
  }

  /**
   * Inserts a job. It replaces one of the same key under a new id: the outcome of that one, if it is still running, does not
   * remove this one.
   */
  insert(tx: Tx, { kind, key, dueAt, lane, payload }: NewJob): void {
    const replaced = key === null ? 0 : this.sql.removeByKey(tx, kind, key);
    this.sql.insert(tx, this.nextId++, kind, key, dueAt, lane, payload);
    this.changed(tx, kind, 1 - replaced);
  }

  /** Returns whether the job was there. */
  remove(tx: Tx, kind: string, key: string): boolean {
    const removed = this.sql.removeByKey(tx, kind, key);
    this.changed(tx, kind, -removed);
    return removed > 0;
  }

  /**
   * Removes the jobs in lanes of an owner among the next `rowsMax` jobs after an id. Returns the last of these ids; null
   * when there are no further jobs.
   */
  removeOfOwner(tx: Tx, [from, to]: LaneRange, after: number, rowsMax: number): number | null {
    const last = this.sql.lastOf(after, rowsMax);
    for (const job of this.sql.inLanes(after, last, from, to)) this.finish(tx, job);
    return last === 0 ? null : last;
  }

  finish(tx: Tx, { id, kind }: Pick<JobRow, "id" | "kind">): void {
    this.changed(tx, kind, -this.sql.removeById(tx, id));
    this.origins.forget(tx, id);
  }

  postpone(tx: Tx, id: number, dueAt: number, payload: string, attempt: number): void {
    this.sql.postpone(tx, dueAt, payload, attempt, id);
    this.origins.rewrote(tx, id);
  }

  /**
   * The wall clock has been set, by so much in all since the start. The due times of jobs from `firstId` on follow it from
   * now on: of those to come, unless said otherwise.
   */
  wallSet(moved: number, firstId: number = this.nextId): void {
    this.origins.begin(firstId, moved);
  }

  /**
   * Sets back the due times of these jobs by as much as the wall clock was set back since they were written. Returns the
   * earliest new one, or null when none has changed.
   */
  setBack(tx: Tx, jobs: readonly JobPosition[]): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { id, dueAt } of jobs) {
      const by = this.origins.setBackSince(id);
      if (by === 0) continue;
      this.sql.setBack(tx, by, id);
      earliest = Math.min(earliest, dueAt - by);
      this.origins.rewrote(tx, id);
    }
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  /** At most `limit` positions after another one, up to a due time, in order. */
  positions(kind: string, after: JobPosition, dueThrough: number, limit: number): JobPosition[] {
    const same = this.sql.sameMoment(kind, after.dueAt, after.lane, after.id, limit);
    if (same.length === limit) return same;
    const later = this.sql.later(kind, dueThrough, after.dueAt, after.lane, limit - same.length);
    return same.length === 0 ? later : [...same, ...later];
  }

  private changed(tx: Tx, kind: string, by: number): void {
    if (by === 0) return;
    tx.afterCommit(() => this.rows.set(kind, (this.rows.get(kind) ?? 0) + by));
  }
}

function statements(db: Database) {
  return {
    insert: db.change<
      [id: number, kind: string, key: string | null, dueAt: number, lane: string, payload: string]
    >("INSERT INTO jobs (id, kind, key, due_at, lane, payload, attempt) VALUES (?, ?, ?, ?, ?, ?, 0)"),
    removeByKey: db.change<[kind: string, key: string]>("DELETE FROM jobs WHERE kind = ? AND key = ?"),
    removeById: db.change<[id: number]>("DELETE FROM jobs WHERE id = ?"),
    postpone: db.change<[dueAt: number, payload: string, attempt: number, id: number]>(
      "UPDATE jobs SET due_at = ?, payload = ?, attempt = ? WHERE id = ?",
    ),
    setBack: db.change<[by: number, id: number]>("UPDATE jobs SET due_at = due_at - ? WHERE id = ?"),
    lastOf: db.number<[after: number, rowsMax: number]>(
      "SELECT max(id) AS n FROM (SELECT id FROM jobs WHERE id > ? ORDER BY id LIMIT ?)",
    ),
    inLanes: db.all<
      Pick<JobRow, "id" | "kind">,
      [after: number, through: number, fromLane: string, toLane: string]
    >("SELECT id, kind FROM jobs WHERE id > ? AND id <= ? AND lane >= ? AND lane < ?"),
    // Both read along the index from where they begin. As one comparison, (due_at, lane, id) would begin at the first
    // job of the same time and lane, of which there may be a million.
    sameMoment: db.all<JobPosition, [kind: string, dueAt: number, lane: string, id: number, limit: number]>(
      `SELECT ${POSITION} FROM jobs WHERE kind = ? AND due_at = ? AND lane = ? AND id > ? ORDER BY id LIMIT ?`,
    ),
    later: db.all<JobPosition, [kind: string, through: number, dueAt: number, lane: string, limit: number]>(
      `SELECT ${POSITION} FROM jobs WHERE kind = ? AND due_at <= ? AND (due_at, lane) > (?, ?) ORDER BY due_at, lane, id LIMIT ?`,
    ),
  };
}

/** How many settings of the wall clock are distinguished: above that the oldest is dropped. */
export const ERAS_MAX = 100;

/** The jobs from an id on, which were made while the wall clock was ahead by so much since the start. */
interface Era {
  readonly firstId: number;
  readonly moved: number;
}

/**
 * Knows how far the wall clock had been moved when each job's due time was written. It holds nothing until the clock is
 * set, then an entry for each time that it was, and one for each job whose due time was written again since.
 */
class DueOrigins {
  private readonly eras: Era[] = [];
  private readonly rewritten = new Map<number, number>();

  /** The wall clock has been set: jobs from this id on belong to a new era. */
  begin(firstId: number, moved: number): void {
    this.eras.push({ firstId, moved });
    if (this.eras.length > ERAS_MAX) this.eras.shift();
  }

  /** The due time of an older job is written again. */
  rewrote(tx: Tx, id: number): void {
    const era = this.eras.at(-1);
    if (era !== undefined) tx.afterCommit(() => this.rewritten.set(id, era.moved));
  }

  /** A job is removed. */
  forget(tx: Tx, id: number): void {
    if (this.eras.length > 0) tx.afterCommit(() => this.rewritten.delete(id));
  }

  /** How far the wall clock was set back since a job's due time was written; 0 when it was not. */
  setBackSince(id: number): number {
    const origin = this.rewritten.get(id) ?? this.eras.findLast(({ firstId }) => id >= firstId)?.moved ?? 0;
    return Math.max(0, origin - (this.eras.at(-1)?.moved ?? 0));
  }
}
