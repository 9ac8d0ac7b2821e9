import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorText, StartupError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Durability } from "./database.ts";
import { assertAccess, InaccessibleFile } from "./file-access.ts";
import { LOG_HEADER_BYTES, type LogDamage, scanLog } from "./log-scan.ts";
import { APPLICATION_ID, type Migration } from "./migrate.ts";
import { isReadFailure, plainReason } from "./storage-failures.ts";

/** How long an examination waits for the lock of another process. */
const BUSY_TIMEOUT_MS = 5_000;

/** The setting with the time at which a server trusted its clock last, in epoch milliseconds. */
export const CLOCK_TRUSTED = "clock_trusted";

/** A file that SQLite cannot read. */
export class UnreadableDatabase extends StartupError {}

/** Facts about a database file, read without changing it. */
export interface DatabaseFacts {
  /** Number of migrations that it has. */
  readonly schema: number;
  /** Sealed check value of the master key; null without one. */
  readonly masterKeyMark: Uint8Array | null;
  /** When a server last trusted its clock, in epoch milliseconds; null if unknown. */
  readonly clockTrustedAt: number | null;
  /** Time of the newest ledger entry, in epoch milliseconds; null without one. */
  readonly newestEntryAt: number | null;
}

/**
 * Checks an existing file without changing it, and without leaving files next to it.
 *
 * @throws StartupError if it is not a Ninefold database, or was written by a newer version.
 */
export function inspectDatabase(path: string, migrations: readonly Migration[]): void {
  assertLogBelongs(path);
  if (!existsSync(path)) return;
  try {
    using db = openUntouched(path);
    const version = firstValue<number>(db, "PRAGMA user_version") ?? 0;
    const application = firstValue<number>(db, "PRAGMA application_id");
    // Most programs set neither number: only a file without tables belongs to no program.
    const tables = firstValue<number>(db, "SELECT count(*) FROM sqlite_master");
    const fresh = version === 0 && application === 0 && tables === 0;
    if (!fresh && application !== APPLICATION_ID)
      throw new StartupError(`${path} is not a Ninefold database.`);
    if (version > migrations.length) {
      throw new StartupError(
        `${path} was written by a newer version of Ninefold (schema ${version}, this one knows ${migrations.length}). ` +
          "Install that version or a later one.",
      );
    }
  } catch (error) {
    if (error instanceof StartupError) throw error;
    // A file of another user is not damaged: nothing must take its place.
    for (const file of [path, `${path}-wal`])
      assertAccess("The database cannot be read", file, dirname(path), "read");
    throw unreadable(path, error);
  }
}

/** Why a database cannot be read: the disk fails, or the file is none. Nothing must take the place of a file that may be whole. */
export function unreadable(path: string, error: unknown): StartupError {
  const reason = plainReason(error);
  if (isReadFailure(error))
    return new InaccessibleFile(
      `${path} cannot be read (${reason})`,
      "Check the disk and the system's log: the file itself may be whole.",
    );
  return new UnreadableDatabase(`${path} cannot be read as a database (${reason}).`);
}

/**
 * Reads facts about an existing file without changing it.
 * @throws StartupError if it is not a Ninefold database, or was written by a newer version.
 */
export function examineDatabase(path: string, migrations: readonly Migration[]): DatabaseFacts {
  inspectDatabase(path, migrations);
  using db = openUntouched(path);
  const valueIn = <T>(table: string, sql: string): T | null => {
    const known = db.query("SELECT 1 FROM sqlite_master WHERE name = ?").get(table) !== null;
    return known ? firstValue<T>(db, sql) : null;
  };
  const times = ["account_entries", "meter_entries"]
    .map((table) => valueIn<number>(table, `SELECT at FROM ${table} ORDER BY sequence DESC LIMIT 1`))
    .filter((time) => time !== null);
  return {
    schema: firstValue<number>(db, "PRAGMA user_version") ?? 0,
    masterKeyMark: valueIn("settings", "SELECT value FROM settings WHERE name = 'master_key_check'"),
    clockTrustedAt: valueIn("settings", `SELECT value FROM settings WHERE name = '${CLOCK_TRUSTED}'`),
    newestEntryAt: times.length === 0 ? null : Math.max(...times),
  };
}

/**
 * Opens a file for reading. To read a file in WAL mode, SQLite creates a WAL next to it if there is none; so such a file
 * is opened as immutable. If there is a WAL, its content is read too.
 */
function openUntouched(path: string): SqliteDatabase {
  // The target of a symbolic link: the WAL is next to the file itself.
  if (existsSync(`${realpathSync(path)}-wal`)) {
    const db = new SqliteDatabase(path, { readonly: true });
    // The backup of a server that was killed may still read it, and moves the log into the file when it ends.
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return db;
  }
  const address = `${Bun.pathToFileURL(path).href}?immutable=1`;
  return new SqliteDatabase(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

/** The value of the first row; null without one. */
function firstValue<T>(db: SqliteDatabase, sql: string): T | null {
  return (db.query(sql).values()[0]?.[0] ?? null) as T | null;
}

/**
 * Whether a database file exists.
 * @throws StartupError if its folder cannot be read, which proves nothing.
 */
export function isDatabaseThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw new StartupError(`${path} cannot be accessed (${errorText(error)}).`);
  }
}

/** Whether a process holds the lock file of a folder. Neither takes the lock nor creates the file. */
export function isFolderHeld(lockPath: string): boolean {
  if (!existsSync(lockPath)) return false;
  using db = new SqliteDatabase(lockPath, { readonly: true });
  try {
    // The transaction of the holder is exclusive: meanwhile nothing can be read.
    db.run("PRAGMA busy_timeout = 0");
    db.query("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    if (/locked|busy/i.test(errorText(error))) return true;
    throw error;
  }
}

/** How a start checks the log of an earlier one. */
export interface LogCheck {
  readonly databasePath: string;
  readonly durability: Durability;
  /** Whether the operator gives up the commits after a damaged part. */
  readonly acceptDamagedLog?: boolean;
  readonly log: Logger;
}

/**
 * Checks the log next to a database before SQLite opens it, because SQLite discards everything after a damaged frame
 * without an error. Changes nothing.
 *
 * @throws StartupError if commits would be lost, and the operator has not accepted that.
 */
export function checkLog({ databasePath, durability, acceptDamagedLog = false, log }: LogCheck): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage === null) return;
  const lost = { file: path, frame: damage.atFrame, lost_commits: damage.lostCommits };
  if (acceptDamagedLog) log.warn("a damaged log was accepted: the commits after the damage are lost", lost);
  else if (durability === "full") throw new StartupError(rejectionOf(path, damage));
  // Without a sync for each commit, a power cut may leave such a hole among the last commits.
  else log.warn("the log has a hole, as after a power cut: the commits after it are lost", lost);
}

/** @throws StartupError if the log next to a database that no process has open is damaged. */
export function assertLogWhole(databasePath: string): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage !== null) throw new StartupError(rejectionOf(path, damage));
}

/**
 * Rejects a log without its database: SQLite would delete it.
 * @throws StartupError if the database is missing or empty, and its log is not.
 */
export function assertLogBelongs(databasePath: string): void {
  const size = sizeOf(databasePath);
  if (size !== null && size > 0) return;
  const path = logOf(databasePath);
  if ((sizeOf(path) ?? 0) <= LOG_HEADER_BYTES) return;
  throw new StartupError(
    `${databasePath} is ${size === null ? "missing" : "empty"}, but its log ${path} exists. ` +
      "Put the database file back next to it, or a backup in their place (ninefold restore FILE --force). Nothing was changed.",
  );
}

/** Path of a database's log: next to the target, if the path is a symbolic link. */
export function logOf(databasePath: string): string {
  return `${existsSync(databasePath) ? realpathSync(databasePath) : databasePath}-wal`;
}

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

function damageOf(path: string): LogDamage | null {
  try {
    return scanLog(path)?.damage ?? null;
  } catch (error) {
    throw new StartupError(`${path} cannot be read (${errorText(error)}).`);
  }
}

function rejectionOf(path: string, { atFrame, lostCommits, lostFrames }: LogDamage): string {
  const place = atFrame === 0 ? "in its header" : `at frame ${atFrame}`;
  return (
    `${path} is damaged ${place}: at least ${lostCommits} commits (${lostFrames} frames) after it would be lost. ` +
    "Put a backup in its place (ninefold restore FILE --force), or give them up (ninefold serve --accept-damaged-log). Nothing was changed."
  );
}

/**
 * The first release without the race between a checkpoint and a commit that restarts the log (3.7.0 to 3.51.2 have it):
 * pages are then never moved into the file, and are lost. The race needs two connections, which a server has.
 */
const SQLITE_VERSION_MIN = "3.51.3";

/** The version of SQLite in this process, which some systems provide. */
export function sqliteVersion(): string {
  using db = new SqliteDatabase(":memory:");
  return firstValue(db, "SELECT sqlite_version()") ?? "";
}

/** The problem of a version of SQLite; null if it is new enough. */
export function sqliteProblem(version: string): string | null {
  if (version !== "" && Bun.semver.order(version, SQLITE_VERSION_MIN) >= 0) return null;
  return `${version} is too old: ${SQLITE_VERSION_MIN} or later is required, because older versions can lose commits`;
}

/** @throws StartupError if a server must not run on this version. */
export function assertSqlite(version: string): void {
  const trouble = sqliteProblem(version);
  if (trouble !== null) throw new StartupError(`SQLite ${trouble}. Update the system, or its SQLite.`);
}
