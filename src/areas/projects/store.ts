import type { CallerProject } from "../../kernel/callers/caller.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";

export type ProjectRow = {
  readonly ref: number;
  readonly id: string;
  readonly account_ref: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  /** IANA name, for times in texts for people. */
  readonly time_zone: string;
  readonly is_default: number;
  /** Whether changes of flags need the approval of somebody else. */
  readonly review: number;
  readonly created_at: number;
  readonly updated_at: number;
};

const COLUMNS =
  "ref, id, account_ref, name, slug, description, time_zone, is_default, review, created_at, updated_at";

export type ProjectStore = ReturnType<typeof projectStore>;

/** The SQL statements of projects. */
export function projectStore(db: Database) {
  const references = new References(db, "projects", "projects_highest_removed");
  return {
    /** The largest reference so far, including removed projects; 0 if there was none. */
    highestRef: references.highest,
    insert: db.change<[ProjectRow]>(
      `INSERT INTO projects (${COLUMNS}) VALUES ($ref, $id, $account_ref, $name, $slug, $description, $time_zone, $is_default, $review, $created_at, $updated_at)`,
    ),
    defaultOf: db.one<CallerProject, [accountRef: number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND is_default = 1",
    ),
    /** A project that is not deleted. */
    find: db.one<ProjectRow, [accountRef: number, id: string]>(
      `SELECT ${COLUMNS} FROM projects WHERE account_ref = ? AND id = ? AND deleted_at IS NULL`,
    ),
    /** Includes a project that is deleted and not yet removed. */
    withRef: db.one<ProjectRow, [ref: number]>(`SELECT ${COLUMNS} FROM projects WHERE ref = ?`),
    livingWithRef: db.one<ProjectRow, [ref: number]>(
      `SELECT ${COLUMNS} FROM projects WHERE ref = ? AND deleted_at IS NULL`,
    ),
    /** Newest first. */
    listBefore: db.all<ProjectRow, [accountRef: number, ref: number, limit: number]>(
      `SELECT ${COLUMNS} FROM projects WHERE account_ref = ? AND ref < ? AND deleted_at IS NULL ORDER BY ref DESC LIMIT ?`,
    ),
    /** 0 when the slug is free. */
    refOfSlug: db.number<[accountRef: number, slug: string]>(
      "SELECT ref AS n FROM projects WHERE account_ref = ? AND slug = ? AND deleted_at IS NULL",
    ),
    oldestExcept: db.one<CallerProject, [accountRef: number, ref: number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND ref <> ? AND deleted_at IS NULL ORDER BY ref LIMIT 1",
    ),
    /** The next project of an account, deleted or not; 0 without one. */
    nextOfAccount: db.number<[accountRef: number, after: number]>(
      "SELECT min(ref) AS n FROM projects WHERE account_ref = ? AND ref > ?",
    ),
    livingOfAccount: db.all<{ readonly ref: number }, [accountRef: number, limit: number]>(
      "SELECT ref FROM projects INDEXED BY projects_by_account WHERE account_ref = ? AND deleted_at IS NULL LIMIT ?",
    ),
    countOfAccount: db.number<[accountRef: number]>(
      "SELECT count AS n FROM account_counts WHERE account_ref = ? AND kind = 'projects'",
    ),
    update: db.change<
      [row: Pick<ProjectRow, "ref" | "name" | "description" | "time_zone" | "review" | "updated_at">]
    >(
      "UPDATE projects SET name = $name, description = $description, time_zone = $time_zone, review = $review, updated_at = $updated_at WHERE ref = $ref",
    ),
    markDeleted: db.change<[now: number, ref: number]>(
      "UPDATE projects SET deleted_at = ?, is_default = 0 WHERE ref = ?",
    ),
    makeDefault: db.change<[ref: number]>("UPDATE projects SET is_default = 1 WHERE ref = ?"),
    remove: db.change<[ref: number]>("DELETE FROM projects WHERE ref = ?"),
    recordRemoved: references.removed,
    /** Projects that are deleted and not yet removed. */
    deleted: db.all<{ readonly ref: number }>("SELECT ref FROM projects WHERE deleted_at IS NOT NULL"),
    /** 0 when the project has never changed. */
    lastActivity: db.number<[ref: number]>("SELECT last_activity_at AS n FROM projects WHERE ref = ?"),
    setLastActivity: db.change<[at: number, ref: number]>(
      "UPDATE projects SET last_activity_at = ? WHERE ref = ?",
    ),
    /** 0 when the project has been removed. */
    accountOf: db.number<[ref: number]>("SELECT account_ref AS n FROM projects WHERE ref = ?"),
  };
}
