import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { existsSync, realpathSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { errorText, StartupError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { CLOCK_TRUSTED } from "../time/clock-trust.ts";
import { type Durability, plainReason } from "./database.ts";
import { LOG_HEADER_BYTES, type LogDamage, scanLog } from "./log-scan.ts";
import { APPLICATION_ID, type Migration } from "./migrate.ts";

/** A file that SQLite cannot read. */
export class UnreadableDatabase extends StartupError {}

/** Facts about a database file, read without changing it. */
export interface DatabaseFacts {
  /** Steps of the schema that it has. */
  readonly schema: number;
  /** What the master key must open; null before there is one. */
  readonly masterKeyMark: Uint8Array | null;
  /** When a server last trusted its clock, epoch milliseconds; null where that is not known. */
  readonly clockTrustedAt: number | null;
  /** Time of the newest entry in a ledger, epoch milliseconds; null when there is none. */
  readonly newestEntryAt: number | null;
}

/**
 * Looks at an existing file without changing a byte of it, and without leaving files next to it.
 *
 * @throws StartupError when it is not a Ninefold database, or was written by a newer version.
 */
export function inspectDatabase(path: string, migrations: readonly Migration[]): void {
  assertLogBelongs(path);
  if (!existsSync(path)) return;
  try {
    using db = openUntouched(path);
    const version = firstValue<number>(db, "PRAGMA user_version") ?? 0;
    const application = firstValue<number>(db, "PRAGMA application_id");
    // Most programs mark their files with neither number: without tables alone is a file nobody's.
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
    throw new UnreadableDatabase(`${path} cannot be read as a database (${plainReason(error)}).`);
  }
}

/**
 * Looks into an existing file without changing a byte of it.
 * @throws StartupError when it is not a Ninefold database, or was written by a newer version.
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
 * Opens a file for reading. To read a file in WAL mode, SQLite makes a WAL next to it where there is none; so such
 * a file is opened as one that nobody changes, which it is. Where there is a WAL, its content counts.
 */
function openUntouched(path: string): SqliteDatabase {
  // Where a symbolic link leads: the WAL lies next to the file itself.
  if (existsSync(`${realpathSync(path)}-wal`)) return new SqliteDatabase(path, { readonly: true });
  const address = `${pathToFileURL(path).href}?immutable=1`;
  return new SqliteDatabase(address, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

/** The one value of the first row; null where there is none. */
function firstValue<T>(db: SqliteDatabase, sql: string): T | null {
  return (db.query(sql).values()[0]?.[0] ?? null) as T | null;
}

/**
 * Whether a database file is there.
 * @throws StartupError when its folder may not be looked into, which proves nothing.
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
  using db = new SqliteDatabase(lockPath, { readonly: true });
  try {
    // The holder's transaction is exclusive: next to it nobody can read.
    db.run("PRAGMA busy_timeout = 0");
    db.query("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    if (/locked|busy/i.test(errorText(error))) return true;
    throw error;
  }
}

/** How a start looks at a log that an earlier one has left. */
export interface LogCheck {
  readonly databasePath: string;
  readonly durability: Durability;
  /** Whether the operator gives up what stands behind a damaged place. */
  readonly acceptDamagedLog?: boolean;
  readonly log: Logger;
}

/**
 * Looks at the log next to a database before SQLite opens it: whatever SQLite cannot follow there, it drops without a
 * word. Changes nothing.
 *
 * @throws StartupError when commits would be lost, and nobody has accepted that.
 */
export function checkLog({ databasePath, durability, acceptDamagedLog = false, log }: LogCheck): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage === null) return;
  const lost = { file: path, frame: damage.atFrame, lost_commits: damage.lostCommits };
  if (acceptDamagedLog) log.warn("a damaged log was accepted: the commits behind the damage are lost", lost);
  else if (durability === "full") throw new StartupError(rejectionOf(path, damage));
  // Without a sync for each commit, a power cut may leave such a hole among the last of them.
  else log.warn("the log has a hole, as after a power cut: the commits behind it are lost", lost);
}

/** @throws StartupError when the log next to a database that nobody has open is damaged. */
export function assertLogWhole(databasePath: string): void {
  const path = logOf(databasePath);
  const damage = damageOf(path);
  if (damage !== null) throw new StartupError(rejectionOf(path, damage));
}

/**
 * A log without its database is no new server: SQLite would remove it.
 * @throws StartupError when the database is missing or empty, and its log is not.
 */
export function assertLogBelongs(databasePath: string): void {
  const size = sizeOf(databasePath);
  if (size !== null && size > 0) return;
  const path = logOf(databasePath);
  if ((sizeOf(path) ?? 0) <= LOG_HEADER_BYTES) return;
  throw new StartupError(
    `${databasePath} is ${size === null ? "missing" : "empty"}, but its log ${path} is there. ` +
      "Put the database file back next to it, or a backup in their place (ninefold restore FILE --force). Nothing was changed.",
  );
}

/** Path of a database's log: next to the file itself, if the path is a symbolic link. */
function logOf(databasePath: string): string {
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
    `${path} is damaged ${place}: at least ${lostCommits} commits (${lostFrames} frames) stand behind it and would be lost. ` +
    "Put a backup in its place (ninefold restore FILE --force), or give them up (ninefold serve --accept-damaged-log). Nothing was changed."
  );
}

/**
 * The first release without the race between a checkpoint and a commit that restarts the log (every release from
 * 3.7.0 to 3.51.2 has it): pages are then never moved into the file, and lost. It takes two connections, and here
 * there are two.
 */
const SQLITE_VERSION_MIN = "3.51.3";

/** The version of SQLite that this process runs on: on some systems it is the system's own. */
export function sqliteVersion(): string {
  using db = new SqliteDatabase(":memory:");
  return firstValue(db, "SELECT sqlite_version()") ?? "";
}

/** What is wrong with a version of SQLite; null when it will do. */
export function sqliteTrouble(version: string): string | null {
  if (version !== "" && Bun.semver.order(version, SQLITE_VERSION_MIN) >= 0) return null;
  return `${version} is too old: ${SQLITE_VERSION_MIN} or later is needed, since older ones can lose commits`;
}

/** @throws StartupError when a server must not run on this version. */
export function assertSqlite(version: string): void {
  const trouble = sqliteTrouble(version);
  if (trouble !== null) throw new StartupError(`SQLite ${trouble}. Update the system, or its SQLite.`);
}
