import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { errorText, StartupError } from "../errors.ts";
import { type Database, plainReason } from "./database.ts";
import { assertLogBelongs } from "./log-check.ts";

/** One step of the schema: numbered from 1 without gaps, never changed once released. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Marks the file as Ninefold's (`PRAGMA application_id`): "9FLD". */
export const APPLICATION_ID = 0x39464c44;

/** A file that SQLite cannot read. */
export class UnreadableDatabase extends StartupError {}

/**
 * Looks at an existing file without changing a byte of it, and without leaving files beside it.
 *
 * @throws StartupError when it is not a Ninefold database, or was written by a newer version.
 */
export function inspectDatabase(path: string, migrations: readonly Migration[]): void {
  assertLogBelongs(path);
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
    throw new UnreadableDatabase(`${path} cannot be read as a database (${plainReason(error)}).`);
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
 * Brings the schema up to date. Returns the names of the steps taken. A step that fails is taken back, the ones before it
 * stay. All steps share one commit, and one sync: several commits without one might be torn anywhere by a power cut,
 * and the log would look damaged.
 */
export function migrate(db: Database, migrations: readonly Migration[]): string[] {
  const current = db.number("SELECT user_version AS n FROM pragma_user_version")();
  const missing = migrations.slice(current);
  if (missing.length === 0) return [];
  db.execute("BEGIN IMMEDIATE");
  let failure: StartupError | null = null;
  const taken: string[] = [];
  try {
    for (const [index, migration] of missing.entries()) {
      failure = takeStep(db, migration, current + index + 1);
      if (failure !== null) break;
      taken.push(migration.name);
    }
    db.execute("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.execute("ROLLBACK");
    throw failure ?? error;
  }
  if (failure !== null) throw failure;
  return taken;
}

function takeStep(db: Database, migration: Migration, version: number): StartupError | null {
  db.execute("SAVEPOINT step");
  try {
    db.execute(migration.sql);
    db.execute(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.execute(`PRAGMA user_version = ${version}`);
    db.execute("RELEASE step");
    return null;
  } catch (error) {
    if (db.inTransaction) db.execute("ROLLBACK TO step; RELEASE step");
    return new StartupError(`Migration ${migration.name} failed: ${errorText(error)}`);
  }
}

function numberOf(row: unknown): number {
  const value = typeof row === "object" && row !== null ? Object.values(row)[0] : undefined;
  return typeof value === "number" ? value : 0;
}
