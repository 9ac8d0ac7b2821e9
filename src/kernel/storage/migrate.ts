import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { errorText, StartupError } from "../errors.ts";
import type { Database } from "./database.ts";

/** One step of the schema: numbered from 1 without gaps, never changed once released. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Marks the file as Ninefold's (`PRAGMA application_id`): "9FLD". */
export const APPLICATION_ID = 0x39464c44;

/**
 * Looks at an existing file without changing a byte of it, and without leaving files beside it.
 *
 * @throws StartupError when it is not a Ninefold database, or was written by a newer version.
 */
export function inspectDatabase(path: string, migrations: readonly Migration[]): void {
  if (!existsSync(path)) return;
  try {
    const db = openUntouched(path);
    try {
      const version = numberOf(db.query("PRAGMA user_version").get());
      const application = numberOf(db.query("PRAGMA application_id").get());
      // Most programs mark their files with neither number: without tables alone is a file nobody's.
      const tables = numberOf(db.query("SELECT count(*) FROM sqlite_master").get());
      const fresh = version === 0 && application === 0 && tables === 0;
      if (!fresh && application !== APPLICATION_ID)
        throw new StartupError(`${path} is not a Ninefold database.`);
      if (version > migrations.length) {
        throw new StartupError(
          `${path} was written by a newer version of Ninefold (schema ${version}, this one knows ${migrations.length}). ` +
            "Install that version or a later one.",
        );
      }
    } finally {
      db.close();
    }
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`${path} cannot be read as a database (${errorText(error)}).`);
  }
}

/**
 * Opens a file for reading. To read a file in WAL mode, SQLite makes a WAL beside it where there is none; so such
 * a file is opened as one that nobody changes, which it is. Where there is a WAL, its content counts.
 */
export function openUntouched(path: string): SqliteDatabase {
  // Where a symbolic link leads: the WAL lies beside the file itself.
  if (existsSync(`${realpathSync(path)}-wal`)) return new SqliteDatabase(path, { readonly: true });
  const address = `${pathToFileURL(path).href}?immutable=1`;
  return new SqliteDatabase(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

/**
 * Brings the schema up to date, each step in a transaction of its own. Returns the names of the steps taken. They are
 * durable with the next commit: steps that a power cut takes are taken again by the next start.
 */
export function migrate(db: Database, migrations: readonly Migration[]): string[] {
  return db.withoutSync(() => takeSteps(db, migrations));
}

function takeSteps(db: Database, migrations: readonly Migration[]): string[] {
  const taken: string[] = [];
  const current = numberOf(db.query<unknown>("PRAGMA user_version").get());
  for (const [index, migration] of migrations.entries()) {
    if (index < current) continue;
    db.execute("BEGIN IMMEDIATE");
    try {
      db.execute(migration.sql);
      db.execute(`PRAGMA application_id = ${APPLICATION_ID}`);
      db.execute(`PRAGMA user_version = ${index + 1}`);
      db.execute("COMMIT");
    } catch (error) {
      if (db.inTransaction) db.execute("ROLLBACK");
      throw new StartupError(`Migration ${migration.name} failed: ${errorText(error)}`);
    }
    taken.push(migration.name);
  }
  return taken;
}

function numberOf(row: unknown): number {
  const value = typeof row === "object" && row !== null ? Object.values(row)[0] : undefined;
  return typeof value === "number" ? value : 0;
}
