import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `flags`. */
export interface FlagRow {
  readonly ref: number;
  readonly flag_key: string;
  readonly enabled: number;
  readonly description: string | null;
}

/** All SQL of flags. */
export class FlagStore {
  private readonly byKey;
  private readonly ofProject;
  private readonly keysOfProject;
  private readonly countOfProject;
  private readonly some;
  private readonly insertFlag;
  private readonly updateFlag;
  private readonly deleteFlag;
  private readonly highest;

  constructor(db: Database) {
    this.byKey = db.query<FlagRow, [number, string]>(
      "SELECT ref, flag_key, enabled, description FROM flags WHERE project_ref = ? AND flag_key = ?",
    );
    this.ofProject = db.query<FlagRow, [number]>(
      "SELECT ref, flag_key, enabled, description FROM flags WHERE project_ref = ? ORDER BY ref DESC",
    );
    this.keysOfProject = db.query<{ flag_key: string }, [number]>(
      "SELECT flag_key FROM flags WHERE project_ref = ? ORDER BY ref DESC",
    );
    this.countOfProject = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM flags WHERE project_ref = ?",
    );
    this.some = db.query<{ ref: number; flag_key: string }, [number, number]>(
      "SELECT ref, flag_key FROM flags WHERE project_ref = ? LIMIT ?",
    );
    this.insertFlag = db.command<[number, number, string, number, string | null]>(
      "INSERT INTO flags (ref, project_ref, flag_key, enabled, description) VALUES (?, ?, ?, ?, ?)",
    );
    this.updateFlag = db.command<[number, string | null, number]>(
      "UPDATE flags SET enabled = ?, description = ? WHERE ref = ?",
    );
    this.deleteFlag = db.command<[number]>("DELETE FROM flags WHERE ref = ?");
    this.highest = db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM flags");
  }

  /** The largest reference given so far; 0 when there is none. */
  highestRef(): number {
    return this.highest.get()?.ref ?? 0;
  }

  find(projectRef: number, flagKey: string): FlagRow | null {
    return this.byKey.get(projectRef, flagKey);
  }

  /** All flags of a project, newest first. */
  list(projectRef: number): FlagRow[] {
    return this.ofProject.all(projectRef);
  }

  /** The keys of all flags of a project, newest first. */
  keys(projectRef: number): string[] {
    return this.keysOfProject.all(projectRef).map(({ flag_key }) => flag_key);
  }

  count(projectRef: number): number {
    return this.countOfProject.get(projectRef)?.count ?? 0;
  }

  /** Some flags of a project. */
  listSome(projectRef: number, limit: number): { ref: number; flag_key: string }[] {
    return this.some.all(projectRef, limit);
  }

  insert(
    tx: Tx,
    ref: number,
    projectRef: number,
    key: string,
    enabled: boolean,
    description: string | null,
  ): void {
    this.insertFlag.run(tx, ref, projectRef, key, enabled ? 1 : 0, description);
  }

  update(tx: Tx, ref: number, enabled: boolean, description: string | null): void {
    this.updateFlag.run(tx, enabled ? 1 : 0, description, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.deleteFlag.run(tx, ref);
  }
}
