import { Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { errorText, StartupError } from "../errors.ts";
import { inspectDatabase, type Migration, openUntouched } from "./migrate.ts";

/** What a database file tells without being changed. */
export interface DatabaseFacts {
  /** Steps of the schema that it has. */
  readonly schema: number;
  /** What the master key must open; null before there is one. */
  readonly masterKeyMark: Uint8Array | null;
  /** Time of the newest entry in a ledger, epoch milliseconds; null when there is none. */
  readonly newestEntryAt: number | null;
}

/**
 * Looks into an existing file without changing a byte of it.
 * @throws StartupError when it is not a Ninefold database, or was written by a newer version.
 */
export function examineDatabase(path: string, migrations: readonly Migration[]): DatabaseFacts {
  inspectDatabase(path, migrations);
  const db = openUntouched(path);
  try {
    const valueIn = <T>(table: string, sql: string): T | null => {
      const known = db.query("SELECT 1 FROM sqlite_master WHERE name = ?").get(table) !== null;
      return known ? (db.query<{ value: T }, []>(sql).get()?.value ?? null) : null;
    };
    const times = [
      valueIn<number>(
        "account_entries",
        "SELECT at AS value FROM account_entries ORDER BY sequence DESC LIMIT 1",
      ),
      valueIn<number>(
        "meter_entries",
        "SELECT at AS value FROM meter_entries ORDER BY sequence DESC LIMIT 1",
      ),
    ].filter((time) => time !== null);
    return {
      schema: db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0,
      masterKeyMark: valueIn("settings", "SELECT value FROM settings WHERE name = 'master_key_check'"),
      newestEntryAt: times.length === 0 ? null : Math.max(...times),
    };
  } finally {
    db.close();
  }
}

/**
 * Whether a database file is there.
 * @throws StartupError when its folder may not be looked into, which is no answer.
 */
export function isDatabaseThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw new StartupError(`${path} cannot be looked at (${errorText(error)}).`);
  }
}

/** Whether a process holds the folder whose lock file this is. Does not take it, and makes no file. */
export function isFolderHeld(lockPath: string): boolean {
  if (!existsSync(lockPath)) return false;
  const db = new SqliteDatabase(lockPath, { readonly: true });
  try {
    // The holder's transaction is exclusive: beside it nobody can read.
    db.run("PRAGMA busy_timeout = 0");
    db.query("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    if (/locked|busy/i.test(errorText(error))) return true;
    throw error;
  } finally {
    db.close();
  }
}
