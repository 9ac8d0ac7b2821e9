import type { Command, Database } from "./storage/database.ts";
import type { Tx } from "./storage/tx.ts";

/** The tables of those who keep stopped projects, a reference each. */
type StoppedTable = "relay_stopped_projects" | "monitor_stopped_projects";

/**
 * Projects for which an area does nothing more: they are deleted, and their rows are being removed. Known at once,
 * without a look into the database, and durable until the last row is gone.
 */
export class StoppedProjects {
  private readonly refs: Set<number>;
  private readonly insert: Command<[number]>;
  private readonly remove: Command<[number]>;

  constructor(db: Database, table: StoppedTable) {
    this.insert = db.command(`INSERT OR IGNORE INTO ${table} (project_ref) VALUES (?)`);
    this.remove = db.command(`DELETE FROM ${table} WHERE project_ref = ?`);
    const stopped = db.query<{ project_ref: number }>(`SELECT project_ref FROM ${table}`).all();
    this.refs = new Set(stopped.map(({ project_ref }) => project_ref));
  }

  has(projectRef: number): boolean {
    return this.refs.has(projectRef);
  }

  /** Begins nothing more for a project, from now on. */
  stop(tx: Tx, projectRef: number): void {
    this.insert.run(tx, projectRef);
    this.refs.add(projectRef);
    tx.onRollback(() => this.refs.delete(projectRef));
  }

  /** Everything of a stopped project has been removed. */
  forget(tx: Tx, projectRef: number): void {
    this.remove.run(tx, projectRef);
    tx.afterCommit(() => this.refs.delete(projectRef));
  }
}
