import type { Database } from "../../kernel/storage/database.ts";

/** A row of `flags`. */
export interface FlagRow {
  readonly ref: number;
  readonly flag_key: string;
  readonly enabled: number;
  readonly description: string | null;
}

const SELECT = "SELECT ref, flag_key, enabled, description FROM flags WHERE project_ref = ?";

export type FlagStore = ReturnType<typeof flagStore>;

/** All SQL of flags. */
export function flagStore(db: Database) {
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM flags"),
    find: db.one<FlagRow, [projectRef: number, flagKey: string]>(`${SELECT} AND flag_key = ?`),
    /** Newest first. */
    ofProject: db.all<FlagRow, [projectRef: number]>(`${SELECT} ORDER BY ref DESC`),
    someOfProject: db.all<FlagRow, [projectRef: number, limit: number]>(`${SELECT} LIMIT ?`),
    /** Newest first, too: what a list shows needs no more of a row. */
    keysOfProject: db.all<Pick<FlagRow, "flag_key">, [projectRef: number]>(
      "SELECT flag_key FROM flags WHERE project_ref = ? ORDER BY ref DESC",
    ),
    count: db.number<[projectRef: number]>("SELECT count(*) AS n FROM flags WHERE project_ref = ?"),
    figures: db.one<{ readonly total: number; readonly on: number }, [projectRef: number]>(
      'SELECT count(*) AS total, coalesce(sum(enabled), 0) AS "on" FROM flags WHERE project_ref = ?',
    ),
    insert: db.change<
      [ref: number, projectRef: number, flagKey: string, enabled: number, description: string | null]
    >("INSERT INTO flags (ref, project_ref, flag_key, enabled, description) VALUES (?, ?, ?, ?, ?)"),
    update: db.change<[enabled: number, description: string | null, ref: number]>(
      "UPDATE flags SET enabled = ?, description = ? WHERE ref = ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM flags WHERE ref = ?"),
  };
}
