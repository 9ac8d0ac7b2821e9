import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `projects`. */
export type ProjectRow = {
  readonly ref: number;
  readonly id: string;
  readonly account_ref: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly is_default: number;
  readonly created_at: number;
  readonly updated_at: number;
};

const COLUMNS = "ref, id, account_ref, name, slug, description, is_default, created_at, updated_at";

function prepare(db: Database) {
  return {
    insert: db.command<[ProjectRow]>(
      `INSERT INTO projects (${COLUMNS}) VALUES ($ref, $id, $account_ref, $name, $slug, $description, $is_default, $created_at, $updated_at)`,
    ),
    defaultOf: db.query<CallerProject, [number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND is_default = 1",
    ),
    byId: db.query<ProjectRow, [string, number]>(
      `SELECT ${COLUMNS} FROM projects WHERE id = ? AND account_ref = ? AND deleted_at IS NULL`,
    ),
    before: db.query<ProjectRow, [number, number, number]>(
      `SELECT ${COLUMNS} FROM projects WHERE account_ref = ? AND ref < ? AND deleted_at IS NULL ORDER BY ref DESC LIMIT ?`,
    ),
    bySlug: db.query<{ ref: number }, [number, string]>(
      "SELECT ref FROM projects WHERE account_ref = ? AND slug = ? AND deleted_at IS NULL",
    ),
    oldest: db.query<CallerProject, [number, number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND ref <> ? AND deleted_at IS NULL ORDER BY ref LIMIT 1",
    ),
    update: db.command<[string, string | null, number, number]>(
      "UPDATE projects SET name = ?, description = ?, updated_at = ? WHERE ref = ?",
    ),
    markDeleted: db.command<[number, number]>(
      "UPDATE projects SET deleted_at = ?, is_default = 0 WHERE ref = ?",
    ),
    makeDefault: db.command<[number]>("UPDATE projects SET is_default = 1 WHERE ref = ?"),
    delete: db.command<[number]>("DELETE FROM projects WHERE ref = ?"),
    deleted: db.query<{ ref: number }>("SELECT ref FROM projects WHERE deleted_at IS NOT NULL"),
    activity: db.query<{ at: number | null }, [number]>(
      "SELECT last_activity_at AS at FROM projects WHERE ref = ?",
    ),
    setActivity: db.command<[number, number]>("UPDATE projects SET last_activity_at = ? WHERE ref = ?"),
    account: db.query<{ account_ref: number }, [number]>("SELECT account_ref FROM projects WHERE ref = ?"),
  };
}

/** All SQL of projects. */
export class ProjectStore {
  private readonly sql;
  private readonly references;

  constructor(db: Database) {
    this.sql = prepare(db);
    this.references = new References(db, "projects", "projects_highest_removed");
  }

  /** The largest reference given so far, also to projects that are gone; 0 when there was none. */
  highestRef(): number {
    return this.references.highest();
  }

  insert(tx: Tx, row: ProjectRow): void {
    this.sql.insert.run(tx, row);
  }

  defaultOf(accountRef: number): CallerProject | null {
    return this.sql.defaultOf.get(accountRef);
  }

  /** An account's project that is not deleted. */
  find(accountRef: number, id: string): ProjectRow | null {
    return this.sql.byId.get(id, accountRef);
  }

  /** An account's projects before a reference, newest first. */
  listBefore(accountRef: number, ref: number, limit: number): ProjectRow[] {
    return this.sql.before.all(accountRef, ref, limit);
  }

  isSlugTaken(accountRef: number, slug: string): boolean {
    return this.sql.bySlug.get(accountRef, slug) !== null;
  }

  /** The account's oldest project besides this one. */
  oldestBeside(accountRef: number, ref: number): CallerProject | null {
    return this.sql.oldest.get(accountRef, ref);
  }

  update(tx: Tx, ref: number, name: string, description: string | null): void {
    this.sql.update.run(tx, name, description, tx.now, ref);
  }

  markDeleted(tx: Tx, ref: number): void {
    this.sql.markDeleted.run(tx, tx.now, ref);
  }

  makeDefault(tx: Tx, ref: number): void {
    this.sql.makeDefault.run(tx, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.sql.delete.run(tx, ref);
    this.references.removed(tx, ref);
  }

  /** Projects that are deleted and not yet removed. */
  deletedRefs(): number[] {
    return this.sql.deleted.all().map(({ ref }) => ref);
  }

  accountOf(ref: number): number | null {
    return this.sql.account.get(ref)?.account_ref ?? null;
  }

  lastActivity(ref: number): number | null {
    return this.sql.activity.get(ref)?.at ?? null;
  }

  setLastActivity(tx: Tx, ref: number, at: number): void {
    this.sql.setActivity.run(tx, at, ref);
  }
}
