import type { ManagedBy } from "../../kernel/resources/managed.ts";
import type { Database } from "../../kernel/storage/database.ts";

/** The columns of `flags` that a save changes. */
export type FlagState = {
  readonly enabled: number;
  readonly description: string | null;
  readonly archived: number;
  readonly version: number;
  readonly updated_at: number;
  /** JSON; null for a plain switch. */
  readonly definition: string | null;
};

/** A row of `flags` with its last written evaluation. */
export type FlagRow = FlagState & {
  readonly ref: number;
  readonly flag_key: string;
  /** Null for flags older than this column. */
  readonly created_at: number | null;
  readonly evaluated_at: number | null;
  readonly managed_by: ManagedBy;
};

export type NamedFlag = Pick<FlagRow, "ref" | "flag_key">;

/** A row of `flag_projects`. */
export type FlagProjectRow = {
  readonly version: number;
  readonly public_version: number;
  readonly bytes: number;
};

const COLUMNS =
  "f.ref, f.flag_key, f.enabled, f.description, f.archived, f.version, f.created_at, f.updated_at, f.definition, f.managed_by, u.at AS evaluated_at";
const SELECT = `SELECT ${COLUMNS} FROM flags f LEFT JOIN flag_uses u ON u.flag_ref = f.ref WHERE f.project_ref = ?`;

export type FlagStore = ReturnType<typeof flagStore>;

/** All SQL of flags. */
export function flagStore(db: Database) {
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM flags"),
    find: db.one<FlagRow, [projectRef: number, flagKey: string]>(`${SELECT} AND f.flag_key = ?`),
    /** A flag by its row, with its project. */
    withRef: db.one<FlagRow & { readonly project_ref: number }, [ref: number]>(
      `SELECT f.project_ref, ${COLUMNS} FROM flags f LEFT JOIN flag_uses u ON u.flag_ref = f.ref WHERE f.ref = ?`,
    ),
    /** Next flags by key. */
    byKey: db.all<FlagRow, [projectRef: number, after: string, limit: number]>(
      `${SELECT} AND f.flag_key > ? ORDER BY f.flag_key LIMIT ?`,
    ),
    /** Next flags, newest first, including archived ones. */
    newest: db.all<FlagRow, [projectRef: number, below: number, limit: number]>(
      `${SELECT} AND f.ref < ? ORDER BY f.ref DESC LIMIT ?`,
    ),
    someOfProject: db.all<NamedFlag, [projectRef: number, limit: number]>(
      "SELECT ref, flag_key FROM flags WHERE project_ref = ? LIMIT ?",
    ),
    /** Keys of the next flags, newest first. */
    newestKeys: db.all<NamedFlag, [projectRef: number, below: number, limit: number]>(
      "SELECT ref, flag_key FROM flags WHERE project_ref = ? AND archived = 0 AND ref < ? ORDER BY ref DESC LIMIT ?",
    ),
    /** Flags of a project, the archived ones included: at most {@link FLAGS_PER_PROJECT_MAX}. */
    count: db.number<[projectRef: number]>("SELECT count(*) AS n FROM flags WHERE project_ref = ?"),
    figures: db.one<
      { readonly total: number; readonly on: number },
      [projectRef: number, countedMax: number]
    >(
      'SELECT count(*) AS total, coalesce(sum(enabled), 0) AS "on" FROM (SELECT enabled FROM flags WHERE project_ref = ? AND archived = 0 LIMIT ?)',
    ),
    insert: db.change<
      [
        row: FlagState & {
          readonly ref: number;
          readonly project_ref: number;
          readonly flag_key: string;
          readonly managed_by: ManagedBy;
        },
      ]
    >(
      "INSERT INTO flags (ref, project_ref, flag_key, enabled, description, archived, version, created_at, updated_at, definition, managed_by) VALUES ($ref, $project_ref, $flag_key, $enabled, $description, $archived, $version, $updated_at, $updated_at, $definition, $managed_by)",
    ),
    update: db.change<[row: FlagState & { readonly ref: number }]>(
      "UPDATE flags SET enabled = $enabled, description = $description, archived = $archived, version = $version, updated_at = $updated_at, definition = $definition WHERE ref = $ref",
    ),
    remove: db.change<[ref: number]>("DELETE FROM flags WHERE ref = ?"),
    project: db.one<FlagProjectRow, [projectRef: number]>(
      "SELECT version, public_version, bytes FROM flag_projects WHERE project_ref = ?",
    ),
    saveProject: db.change<[projectRef: number, version: number, publicVersion: number, bytes: number]>(
      "INSERT OR REPLACE INTO flag_projects (project_ref, version, public_version, bytes) VALUES (?, ?, ?, ?)",
    ),
    removeProject: db.change<[projectRef: number]>("DELETE FROM flag_projects WHERE project_ref = ?"),
    saveUse: db.change<[ref: number, at: number]>(
      "INSERT OR REPLACE INTO flag_uses (flag_ref, at) VALUES (?, ?)",
    ),
    removeUse: db.change<[ref: number]>("DELETE FROM flag_uses WHERE flag_ref = ?"),
    /** Counts of the days from one to another, both inclusive: JSON. */
    evaluations: db.all<
      { readonly day: number; readonly counts: string },
      [ref: number, fromDay: number, toDay: number]
    >("SELECT day, counts FROM flag_evaluations WHERE flag_ref = ? AND day >= ? AND day <= ? ORDER BY day"),
    saveEvaluations: db.change<[ref: number, day: number, counts: string]>(
      "INSERT OR REPLACE INTO flag_evaluations (flag_ref, day, counts) VALUES (?, ?, ?)",
    ),
    removeEvaluations: db.change<[ref: number]>("DELETE FROM flag_evaluations WHERE flag_ref = ?"),
    purgeEvaluations: db.change<[beforeDay: number, rowsMax: number]>(
      "DELETE FROM flag_evaluations WHERE (flag_ref, day) IN (SELECT flag_ref, day FROM flag_evaluations WHERE day < ? LIMIT ?)",
    ),
  };
}
