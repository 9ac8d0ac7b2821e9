import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";

/** A job as it stands in the table. */
export interface JobRow {
  readonly id: number;
  readonly kind: string;
  readonly key: string | null;
  readonly due_at: number;
  readonly lane: string;
  readonly payload: string;
  readonly attempt: number;
}

/** Where a job stands in the order of due times: what the search for due jobs reads of it. */
export interface JobPosition {
  readonly due_at: number;
  readonly lane: string;
  readonly id: number;
}

/** What a new job's row holds. */
export interface NewJob {
  readonly kind: string;
  readonly key: string;
  readonly dueAt: number;
  readonly lane: string;
  readonly payload: string;
}

const COLUMNS = "id, kind, key, due_at, lane, payload, attempt";

function statements(db: Database) {
  return {
    insert: db.command<[number, string, string | null, number, string, string]>(
      "INSERT INTO jobs (id, kind, key, due_at, lane, payload, attempt) VALUES (?, ?, ?, ?, ?, ?, 0)",
    ),
    highest: db.query<{ id: number | null }>("SELECT max(id) AS id FROM jobs"),
    deleteByKey: db.command<[string, string]>("DELETE FROM jobs WHERE kind = ? AND key = ?"),
    deleteById: db.command<[number]>("DELETE FROM jobs WHERE id = ?"),
    postpone: db.command<[number, string, number, number]>(
      "UPDATE jobs SET due_at = ?, payload = ?, attempt = ? WHERE id = ?",
    ),
    setBack: db.command<[number, number]>("UPDATE jobs SET due_at = due_at - ? WHERE id = ?"),
    // Both read along the index from where they begin. As one comparison, (due_at, lane, id) would begin at the first
    // job of the same moment and lane, of which there may be a million.
    sameMoment: db.query<JobPosition, [string, number, string, number, number]>(
      "SELECT id, due_at, lane FROM jobs WHERE kind = ? AND due_at = ? AND lane = ? AND id > ? ORDER BY id LIMIT ?",
    ),
    later: db.query<JobPosition, [string, number, number, string, number]>(
      "SELECT id, due_at, lane FROM jobs WHERE kind = ? AND due_at <= ? AND (due_at, lane) > (?, ?) ORDER BY due_at, lane, id LIMIT ?",
    ),
    earliest: db.query<{ due_at: number | null }, [string, number]>(
      "SELECT min(due_at) AS due_at FROM jobs WHERE kind = ? AND due_at > ?",
    ),
    byKey: db.query<JobRow, [string, string]>(`SELECT ${COLUMNS} FROM jobs WHERE kind = ? AND key = ?`),
    byId: db.query<JobRow, [number]>(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`),
    countDue: db.query<{ jobs: number }, [string, number, number]>(
      "SELECT count(*) AS jobs FROM (SELECT 1 FROM jobs WHERE kind = ? AND due_at <= ? LIMIT ?)",
    ),
    countKinds: db.query<{ kind: string; jobs: number }>(
      "SELECT kind, count(*) AS jobs FROM jobs GROUP BY kind",
    ),
  };
}

/** All SQL of the job table. */
export class JobStore {
  private readonly sql;
  private readonly origins = new DueOrigins();
  private readonly rowsByKind: Map<string, number>;
  private nextId: number;

  constructor(db: Database) {
    this.sql = statements(db);
    this.nextId = (this.sql.highest.get()?.id ?? 0) + 1;
    this.rowsByKind = new Map(this.sql.countKinds.all().map(({ kind, jobs }) => [kind, jobs]));
  }

  /** Jobs in the table, by kind: counted once, and updated with every commit. */
  get rows(): ReadonlyMap<string, number> {
    return this.rowsByKind;
  }

  /** How many jobs of a kind are due, running ones included; `limit` at most. */
  due(kind: string, now: number, limit: number): number {
    return this.sql.countDue.get(kind, now, limit)?.jobs ?? 0;
  }

  /** Replaces a job under a new id: the outcome of the earlier one, if it is still running, does not remove this one. */
  replace(tx: Tx, job: NewJob): void {
    const replaced = this.sql.deleteByKey.run(tx, job.kind, job.key);
    this.insertRow(tx, job, job.key);
    this.changed(tx, job.kind, 1 - replaced);
  }

  /** Inserts a job without a key. */
  insert(tx: Tx, job: Omit<NewJob, "key">): void {
    this.insertRow(tx, job, null);
    this.changed(tx, job.kind, 1);
  }

  private insertRow(tx: Tx, job: Omit<NewJob, "key">, key: string | null): void {
    this.sql.insert.run(tx, this.nextId++, job.kind, key, job.dueAt, job.lane, job.payload);
  }

  remove(tx: Tx, kind: string, key: string): boolean {
    const removed = this.sql.deleteByKey.run(tx, kind, key);
    this.changed(tx, kind, -removed);
    return removed > 0;
  }

  finish(tx: Tx, { id, kind }: JobRow): void {
    this.changed(tx, kind, -this.sql.deleteById.run(tx, id));
    if (this.origins.wasMoved) tx.afterCommit(() => this.origins.forget(id));
  }

  private changed(tx: Tx, kind: string, by: number): void {
    if (by === 0) return;
    tx.afterCommit(() => this.rowsByKind.set(kind, (this.rowsByKind.get(kind) ?? 0) + by));
  }

  postpone(tx: Tx, id: number, dueAt: number, payload: string, attempt: number): void {
    this.sql.postpone.run(tx, dueAt, payload, attempt, id);
    this.rewrote(tx, id);
  }

  /** How the clock stood when the jobs in the table were made is unknown: they count as made now. */
  startWith(wallMoved: number): void {
    if (wallMoved !== 0) this.origins.begin(0, wallMoved);
  }

  /** The wall clock has been set, by so much in all since the start. Due times follow it from now on. */
  wallSet(moved: number): void {
    this.origins.begin(this.nextId, moved);
  }

  /**
   * Sets back the due times of these jobs by as much as the wall clock was set back since they were written. Returns the
   * earliest new one, or null when none has changed.
   */
  setBack(tx: Tx, jobs: readonly JobPosition[]): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { id, due_at } of jobs) {
      const by = this.origins.setBackSince(id);
      if (by === 0) continue;
      this.sql.setBack.run(tx, by, id);
      earliest = Math.min(earliest, due_at - by);
      this.rewrote(tx, id);
    }
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  private rewrote(tx: Tx, id: number): void {
    const { wasMoved, moved } = this.origins;
    if (wasMoved) tx.afterCommit(() => this.origins.rewrote(id, moved));
  }

  /** At most `limit` positions after another one, up to a due time, in order. */
  positions(kind: string, after: JobPosition, dueThrough: number, limit: number): JobPosition[] {
    const same = this.sql.sameMoment.all(kind, after.due_at, after.lane, after.id, limit);
    if (same.length === limit) return same;
    const later = this.sql.later.all(kind, dueThrough, after.due_at, after.lane, limit - same.length);
    return same.length === 0 ? later : [...same, ...later];
  }

  /** The earliest due time after `now` of a job of this kind, or null. */
  earliestAfter(kind: string, now: number): number | null {
    return this.sql.earliest.get(kind, now)?.due_at ?? null;
  }

  find(kind: string, key: string): JobRow | null {
    return this.sql.byKey.get(kind, key);
  }

  /** The job of an id, or null when it has been cancelled or replaced. */
  job(id: number): JobRow | null {
    return this.sql.byId.get(id);
  }
}

/** How many settings of the wall clock are told apart: the oldest is forgotten when there are more. */
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
  private eras: Era[] = [];
  private readonly rewritten = new Map<number, number>();
  private movedBy = 0;

  /** How far the wall clock has been moved. */
  get moved(): number {
    return this.movedBy;
  }

  /** Whether it was ever moved: until then nothing need be remembered. */
  get wasMoved(): boolean {
    return this.eras.length > 0;
  }

  /** The wall clock has been set: jobs from this id on belong to a new era. */
  begin(firstId: number, moved: number): void {
    this.movedBy = moved;
    this.eras.push({ firstId, moved });
    if (this.eras.length > ERAS_MAX) this.eras.shift();
  }

  /** The due time of an older job was written while the clock was moved by so much. */
  rewrote(id: number, moved: number): void {
    this.rewritten.set(id, moved);
  }

  /** A job is gone. */
  forget(id: number): void {
    this.rewritten.delete(id);
  }

  /** How far the wall clock was set back since a job's due time was written; 0 when it was not. */
  setBackSince(id: number): number {
    const origin = this.rewritten.get(id) ?? this.eras.findLast(({ firstId }) => id >= firstId)?.moved ?? 0;
    return Math.max(0, origin - this.movedBy);
  }
}
