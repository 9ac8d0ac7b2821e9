import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `flags`. */
export interface FlagRow {
  readonly ref: number;
  readonly flag_key: string;
  readonly enabled: number;
  readonly description: string | null;
}

const SELECT = "SELECT ref, flag_key, enabled, description FROM flags WHERE project_ref = ?";

function prepare(db: Database) {
  return {
    byKey: db.query<FlagRow, [number, string]>(`${SELECT} AND flag_key = ?`),
    ofProject: db.query<FlagRow, [number]>(`${SELECT} ORDER BY ref DESC`),
    someOfProject: db.query<FlagRow, [number, number]>(`${SELECT} LIMIT ?`),
    keys: db.query<{ flag_key: string }, [number]>(
      "SELECT flag_key FROM flags WHERE project_ref = ? ORDER BY ref DESC",
    ),
    count: db.query<{ count: number }, [number]>("SELECT count(*) AS count FROM flags WHERE project_ref = ?"),
    highest: db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM flags"),
    insert: db.command<[number, number, string, number, string | null]>(
      "INSERT INTO flags (ref, project_ref, flag_key, enabled, description) VALUES (?, ?, ?, ?, ?)",
    ),
    update: db.command<[number, string | null, number]>(
      "UPDATE flags SET enabled = ?, description = ? WHERE ref = ?",
    ),
    delete: db.command<[number]>("DELETE FROM flags WHERE ref = ?"),
  };
}

/** All SQL of flags. */
export class FlagStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = prepare(db);
  }

  /** The largest reference given so far; 0 when there is none. */
  highestRef(): number {
    return this.sql.highest.get()?.ref ?? 0;
  }

  find(projectRef: number, flagKey: string): FlagRow | null {
    return this.sql.byKey.get(projectRef, flagKey);
  }

  /** All flags of a project, newest first. */
  list(projectRef: number): FlagRow[] {
    return this.sql.ofProject.all(projectRef);
  }

  /** The keys of all flags of a project, newest first. */
  keys(projectRef: number): string[] {
    return this.sql.keys.all(projectRef).map(({ flag_key }) => flag_key);
  }

  count(projectRef: number): number {
    return this.sql.count.get(projectRef)?.count ?? 0;
  }

  /** Some flags of a project. */
  listSome(projectRef: number, limit: number): FlagRow[] {
    return this.sql.someOfProject.all(projectRef, limit);
  }

  insert(
    tx: Tx,
    ref: number,
    projectRef: number,
    key: string,
    enabled: boolean,
    description: string | null,
  ): void {
    this.sql.insert.run(tx, ref, projectRef, key, enabled ? 1 : 0, description);
  }

  update(tx: Tx, ref: number, enabled: boolean, description: string | null): void {
    this.sql.update.run(tx, enabled ? 1 : 0, description, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.sql.delete.run(tx, ref);
  }
}
