import type { Database } from "../storage/database.ts";
import type { Tx } from "../storage/tx.ts";

/** A table of an area with the references of its stopped projects. */
type StoppedTable = `${string}_stopped_projects`;

/**
 * Deleted projects for which an area does nothing more, while their rows are being removed. Held in memory, and
 * durable until the last row is removed.
 */
export class StoppedProjects {
  private readonly refs: Set<number>;
  private readonly insert;
  private readonly remove;

  constructor(db: Database, table: StoppedTable) {
    this.insert = db.change<[projectRef: number]>(`INSERT OR IGNORE INTO ${table} (project_ref) VALUES (?)`);
    this.remove = db.change<[projectRef: number]>(`DELETE FROM ${table} WHERE project_ref = ?`);
    const stopped = db.all<{ project_ref: number }>(`SELECT project_ref FROM ${table}`)();
    this.refs = new Set(stopped.map(({ project_ref }) => project_ref));
  }

  has(projectRef: number): boolean {
    return this.refs.has(projectRef);
  }

  /** From now on, nothing begins in this project. */
  stop(tx: Tx, projectRef: number): void {
    this.insert(tx, projectRef);
    this.refs.add(projectRef);
    tx.onRollback(() => this.refs.delete(projectRef));
  }

  /** Everything of a stopped project has been removed. */
  forget(tx: Tx, projectRef: number): void {
    this.remove(tx, projectRef);
    tx.afterCommit(() => this.refs.delete(projectRef));
  }
}
