import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `projects`. */
export interface ProjectRow {
  readonly ref: number;
  readonly id: string;
  readonly account_ref: number;
  readonly name: string;
  readonly slug: string;
  readonly description: string | null;
  readonly is_default: number;
  readonly created_at: number;
  readonly updated_at: number;
}

const COLUMNS = "ref, id, account_ref, name, slug, description, is_default, created_at, updated_at";
/** All SQL of projects. */
export class ProjectStore {
  private readonly insertProject;
  private readonly defaultByAccount;
  private readonly byId;
  private readonly before;
  private readonly bySlug;
  private readonly oldest;
  private readonly updateProject;
  private readonly updateDeleted;
  private readonly updateDefault;
  private readonly deleteProject;
  private readonly selectDeleted;
  private readonly selectActivity;
  private readonly updateActivity;
  private readonly selectAccount;
  private readonly references;

  constructor(db: Database) {
    this.insertProject = db.command<
      [number, string, number, string, string, string | null, number, number, number]
    >(`INSERT INTO projects (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    this.defaultByAccount = db.query<{ ref: number; id: string }, [number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND is_default = 1",
    );
    this.byId = db.query<ProjectRow, [string, number]>(
      `SELECT ${COLUMNS} FROM projects WHERE id = ? AND account_ref = ? AND deleted_at IS NULL`,
    );
    this.before = db.query<ProjectRow, [number, number, number]>(
      `SELECT ${COLUMNS} FROM projects WHERE account_ref = ? AND ref < ? AND deleted_at IS NULL ORDER BY ref DESC LIMIT ?`,
    );
    this.bySlug = db.query<{ ref: number }, [number, string]>(
      "SELECT ref FROM projects WHERE account_ref = ? AND slug = ? AND deleted_at IS NULL",
    );
    this.oldest = db.query<{ ref: number; id: string }, [number, number]>(
      "SELECT ref, id FROM projects WHERE account_ref = ? AND ref <> ? AND deleted_at IS NULL ORDER BY ref LIMIT 1",
    );
    this.updateProject = db.command<[string, string | null, number, number]>(
      "UPDATE projects SET name = ?, description = ?, updated_at = ? WHERE ref = ?",
    );
    this.updateDeleted = db.command<[number, number]>(
      "UPDATE projects SET deleted_at = ?, is_default = 0 WHERE ref = ?",
    );
    this.updateDefault = db.command<[number]>("UPDATE projects SET is_default = 1 WHERE ref = ?");
    this.deleteProject = db.command<[number]>("DELETE FROM projects WHERE ref = ?");
    this.selectDeleted = db.query<{ ref: number }>("SELECT ref FROM projects WHERE deleted_at IS NOT NULL");
    this.selectActivity = db.query<{ at: number | null }, [number]>(
      "SELECT last_activity_at AS at FROM projects WHERE ref = ?",
    );
    this.updateActivity = db.command<[number, number]>(
      "UPDATE projects SET last_activity_at = ? WHERE ref = ?",
    );
    this.selectAccount = db.query<{ account_ref: number }, [number]>(
      "SELECT account_ref FROM projects WHERE ref = ?",
    );
    this.references = new References(db, "projects", "projects_highest_removed");
  }

  /** The largest reference given so far, also to projects that are gone; 0 when there was none. */
  highestRef(): number {
    return this.references.highest();
  }

  insert(tx: Tx, row: ProjectRow): void {
    const { ref, id, account_ref, name, slug, description, is_default, created_at, updated_at } = row;
    this.insertProject.run(
      tx,
      ref,
      id,
      account_ref,
      name,
      slug,
      description,
      is_default,
      created_at,
      updated_at,
    );
  }

  defaultOf(accountRef: number): { ref: number; id: string } | null {
    return this.defaultByAccount.get(accountRef);
  }

  /** An account's project that is not deleted. */
  find(accountRef: number, id: string): ProjectRow | null {
    return this.byId.get(id, accountRef);
  }

  /** An account's projects before a reference, newest first. */
  listBefore(accountRef: number, ref: number, limit: number): ProjectRow[] {
    return this.before.all(accountRef, ref, limit);
  }

  isSlugTaken(accountRef: number, slug: string): boolean {
    return this.bySlug.get(accountRef, slug) !== null;
  }

  /** The account's oldest project besides this one. */
  oldestBeside(accountRef: number, ref: number): { ref: number; id: string } | null {
    return this.oldest.get(accountRef, ref);
  }

  update(tx: Tx, ref: number, name: string, description: string | null): void {
    this.updateProject.run(tx, name, description, tx.now, ref);
  }

  markDeleted(tx: Tx, ref: number): void {
    this.updateDeleted.run(tx, tx.now, ref);
  }

  makeDefault(tx: Tx, ref: number): void {
    this.updateDefault.run(tx, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.deleteProject.run(tx, ref);
    this.references.removed(tx, ref);
  }

  /** Projects that are deleted and not yet removed. */
  deletedRefs(): number[] {
    return this.selectDeleted.all().map(({ ref }) => ref);
  }

  accountOf(ref: number): number | null {
    return this.selectAccount.get(ref)?.account_ref ?? null;
  }

  lastActivity(ref: number): number | null {
    return this.selectActivity.get(ref)?.at ?? null;
  }

  setLastActivity(tx: Tx, ref: number, at: number): void {
    this.updateActivity.run(tx, at, ref);
  }
}
