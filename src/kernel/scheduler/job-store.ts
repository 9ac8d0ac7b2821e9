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

/** All SQL of the job table. */
export class JobStore {
  private readonly insertJob;
  private nextId: number;
  private readonly deleteByKey;
  private readonly deleteById;
  private readonly postponeById;
  private readonly setBackById;
  private readonly selectSameMoment;
  private readonly selectLater;
  private readonly selectEarliest;
  private readonly selectByKey;
  private readonly selectById;
  private readonly countDue;
  private readonly rowsByKind: Map<string, number>;
  private readonly origins = new DueOrigins();

  constructor(db: Database) {
    this.insertJob = db.command<[number, string, string | null, number, string, string]>(
      "INSERT INTO jobs (id, kind, key, due_at, lane, payload, attempt) VALUES (?, ?, ?, ?, ?, ?, 0)",
    );
    this.nextId = (db.query<{ id: number | null }>("SELECT max(id) AS id FROM jobs").get()?.id ?? 0) + 1;
    this.deleteByKey = db.command<[string, string]>("DELETE FROM jobs WHERE kind = ? AND key = ?");
    this.deleteById = db.command<[number]>("DELETE FROM jobs WHERE id = ?");
    this.postponeById = db.command<[number, string, number, number]>(
      "UPDATE jobs SET due_at = ?, payload = ?, attempt = ? WHERE id = ?",
    );
    this.setBackById = db.command<[number, number]>("UPDATE jobs SET due_at = due_at - ? WHERE id = ?");
    // Both read along the index from where they begin. Compared in one go, (due_at, lane, id) would begin at the first
    // job of the same moment and lane, of which there may be a million.
    this.selectSameMoment = db.query<JobPosition, [string, number, string, number, number]>(
      "SELECT id, due_at, lane FROM jobs WHERE kind = ? AND due_at = ? AND lane = ? AND id > ? ORDER BY id LIMIT ?",
    );
    this.selectLater = db.query<JobPosition, [string, number, number, string, number]>(
      "SELECT id, due_at, lane FROM jobs WHERE kind = ? AND due_at <= ? AND (due_at, lane) > (?, ?) ORDER BY due_at, lane, id LIMIT ?",
    );
    this.selectEarliest = db.query<{ due_at: number | null }, [string, number]>(
      "SELECT min(due_at) AS due_at FROM jobs WHERE kind = ? AND due_at > ?",
    );
    this.selectByKey = db.query<JobRow, [string, string]>(
      `SELECT ${COLUMNS} FROM jobs WHERE kind = ? AND key = ?`,
    );
    this.selectById = db.query<JobRow, [number]>(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`);
    this.countDue = db.query<{ jobs: number }, [string, number, number]>(
      "SELECT count(*) AS jobs FROM (SELECT 1 FROM jobs WHERE kind = ? AND due_at <= ? LIMIT ?)",
    );
    const counted = db.query<{ kind: string; jobs: number }>(
      "SELECT kind, count(*) AS jobs FROM jobs GROUP BY kind",
    );
    this.rowsByKind = new Map(counted.all().map(({ kind, jobs }) => [kind, jobs]));
  }

  /** Jobs in the table, by kind: counted once, and kept up with every commit. */
  get rows(): ReadonlyMap<string, number> {
    return this.rowsByKind;
  }

  /** Jobs of a kind that are due, those under way included; counted no further than `limit`. */
  due(kind: string, now: number, limit: number): number {
    return this.countDue.get(kind, now, limit)?.jobs ?? 0;
  }

  /** Replaces under a new id: the outcome of an earlier job of that key, still running, does not take this one away. */
  replace(tx: Tx, job: NewJob): void {
    const replaced = this.deleteByKey.run(tx, job.kind, job.key);
    this.insertRow(tx, job, job.key);
    this.changed(tx, job.kind, 1 - replaced);
  }

  /** Puts in a job that has no key: nothing can be in its place. */
  insert(tx: Tx, job: Omit<NewJob, "key">): void {
    this.insertRow(tx, job, null);
    this.changed(tx, job.kind, 1);
  }

  private insertRow(tx: Tx, job: Omit<NewJob, "key">, key: string | null): void {
    this.insertJob.run(tx, this.nextId++, job.kind, key, job.dueAt, job.lane, job.payload);
  }

  remove(tx: Tx, kind: string, key: string): boolean {
    const removed = this.deleteByKey.run(tx, kind, key);
    this.changed(tx, kind, -removed);
    return removed > 0;
  }

  finish(tx: Tx, { id, kind }: JobRow): void {
    this.changed(tx, kind, -this.deleteById.run(tx, id));
    if (this.origins.tells) tx.afterCommit(() => this.origins.forget(id));
  }

  private changed(tx: Tx, kind: string, by: number): void {
    if (by === 0) return;
    tx.afterCommit(() => this.rowsByKind.set(kind, (this.rowsByKind.get(kind) ?? 0) + by));
  }

  postpone(tx: Tx, id: number, dueAt: number, payload: string, attempt: number): void {
    this.postponeById.run(tx, dueAt, payload, attempt, id);
    this.rewrote(tx, id);
  }

  /** Nothing is known of the clock that the jobs in the table were made by: they count as made now. */
  startWith(wallMoved: number): void {
    if (wallMoved !== 0) this.origins.begin(0, wallMoved);
  }

  /** The wall clock has been set, by so much in all since the start: due times are written by it from now on. */
  wallSet(moved: number): void {
    this.origins.begin(this.nextId, moved);
  }

  /**
   * Sets back the due times of these jobs by what the wall clock was set back since they were written. Returns the
   * earliest of the new ones, or null when all stay.
   */
  setBack(tx: Tx, jobs: readonly JobPosition[]): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { id, due_at } of jobs) {
      const by = this.origins.setBackSince(id);
      if (by === 0) continue;
      this.setBackById.run(tx, by, id);
      earliest = Math.min(earliest, due_at - by);
      this.rewrote(tx, id);
    }
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  private rewrote(tx: Tx, id: number): void {
    const { tells, moved } = this.origins;
    if (tells) tx.afterCommit(() => this.origins.rewrote(id, moved));
  }

  /** Positions after another one, up to a due time: at most `limit`, in their order. */
  positions(kind: string, after: JobPosition, dueThrough: number, limit: number): JobPosition[] {
    const same = this.selectSameMoment.all(kind, after.due_at, after.lane, after.id, limit);
    if (same.length === limit) return same;
    const later = this.selectLater.all(kind, dueThrough, after.due_at, after.lane, limit - same.length);
    return same.length === 0 ? later : [...same, ...later];
  }

  /** The earliest time after `now` at which a job of this kind falls due, or null. */
  earliestAfter(kind: string, now: number): number | null {
    return this.selectEarliest.get(kind, now)?.due_at ?? null;
  }

  find(kind: string, key: string): JobRow | null {
    return this.selectByKey.get(kind, key);
  }

  /** The job of an id, or null when it has been taken back or replaced. */
  job(id: number): JobRow | null {
    return this.selectById.get(id);
  }
}

/** Times that the wall clock was set which are told apart. Before them a clock that is set every second counts as set once. */
export const ERAS_MAX = 100;

/** The jobs from an id on that were made while the wall clock had been moved by so much since the start. */
interface Era {
  readonly firstId: number;
  readonly moved: number;
}

/**
 * Remembers how far the wall clock had been moved when each job's due time was written. Nothing, as long as nobody sets
 * the clock; then an entry for each time that somebody did, and one for each job whose due time was written anew since.
 */
class DueOrigins {
  private eras: Era[] = [];
  private readonly rewritten = new Map<number, number>();
  private movedBy = 0;

  /** How far the wall clock has been moved. */
  get moved(): number {
    return this.movedBy;
  }

  /** Whether it was ever moved: as long as it was not, nothing need be told. */
  get tells(): boolean {
    return this.eras.length > 0;
  }

  /** The wall clock has been set: jobs from this id on are made in another era. */
  begin(firstId: number, moved: number): void {
    this.movedBy = moved;
    this.eras.push({ firstId, moved });
    if (this.eras.length > ERAS_MAX) this.eras.shift();
  }

  /** The due time of a job that was there before was written when the clock was moved by so much. */
  rewrote(id: number, moved: number): void {
    this.rewritten.set(id, moved);
  }

  /** A job is gone. */
  forget(id: number): void {
    this.rewritten.delete(id);
  }

  /** By how much less the wall clock is moved now than when a job's due time was written; 0 when it is not less. */
  setBackSince(id: number): number {
    const origin = this.rewritten.get(id) ?? this.eras.findLast(({ firstId }) => id >= firstId)?.moved ?? 0;
    return Math.max(0, origin - this.movedBy);
  }
}
