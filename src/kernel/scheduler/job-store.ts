import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";

/** A job as it stands in the table. */
export interface JobRow {
  readonly id: number;
  readonly kind: string;
  readonly key: string;
  readonly due_at: number;
  readonly payload: string;
  readonly attempt: number;
}

/** All SQL of the job table. */
export class JobStore {
  private readonly replaceJob;
  private nextId: number;
  private readonly deleteByKey;
  private readonly deleteById;
  private readonly postponeById;
  private readonly selectDue;
  private readonly selectEarliest;
  private readonly selectByKey;

  constructor(db: Database) {
    this.replaceJob = db.command<[number, string, string, number, string]>(
      "INSERT OR REPLACE INTO jobs (id, kind, key, due_at, payload, attempt) VALUES (?, ?, ?, ?, ?, 0)",
    );
    this.nextId = (db.query<{ id: number | null }>("SELECT max(id) AS id FROM jobs").get()?.id ?? 0) + 1;
    this.deleteByKey = db.command<[string, string]>("DELETE FROM jobs WHERE kind = ? AND key = ?");
    this.deleteById = db.command<[number]>("DELETE FROM jobs WHERE id = ?");
    this.postponeById = db.command<[number, string, number, number]>(
      "UPDATE jobs SET due_at = ?, payload = ?, attempt = ? WHERE id = ?",
    );
    this.selectDue = db.query<JobRow, [string, number, number]>(
      "SELECT id, kind, key, due_at, payload, attempt FROM jobs WHERE kind = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?",
    );
    this.selectEarliest = db.query<{ due_at: number | null }, [string, number]>(
      "SELECT min(due_at) AS due_at FROM jobs WHERE kind = ? AND due_at > ?",
    );
    this.selectByKey = db.query<JobRow, [string, string]>(
      "SELECT id, kind, key, due_at, payload, attempt FROM jobs WHERE kind = ? AND key = ?",
    );
  }

  /** Replaces under a new id: the outcome of an earlier job of that key, still running, does not take this one away. */
  replace(tx: Tx, kind: string, key: string, dueAt: number, payload: string): void {
    this.replaceJob.run(tx, this.nextId++, kind, key, dueAt, payload);
  }

  remove(tx: Tx, kind: string, key: string): boolean {
    return this.deleteByKey.run(tx, kind, key) > 0;
  }

  finish(tx: Tx, id: number): void {
    this.deleteById.run(tx, id);
  }

  postpone(tx: Tx, id: number, dueAt: number, payload: string, attempt: number): void {
    this.postponeById.run(tx, dueAt, payload, attempt, id);
  }

  due(kind: string, now: number, limit: number): JobRow[] {
    return this.selectDue.all(kind, now, limit);
  }

  /** The earliest time after `now` at which a job of this kind falls due, or null. */
  earliestAfter(kind: string, now: number): number | null {
    return this.selectEarliest.get(kind, now)?.due_at ?? null;
  }

  find(kind: string, key: string): JobRow | null {
    return this.selectByKey.get(kind, key);
  }
}
