import { Database as SqliteDatabase } from "bun:sqlite";
import { chmodSync, existsSync } from "node:fs";
import { dirname } from "node:path";
import { errorText, StartupError } from "../errors.ts";
import { assertAccess, giveToFolderOwner } from "./file-access.ts";
import { dataFilesOf } from "./folders.ts";
import { plainReason } from "./storage-failures.ts";

/**
 * How long a start waits for the lock: a process that checks whether it is held takes it for some microseconds.
 */
const LOOK_TIMEOUT_MS = 200;

/** Releases the lock. */
export type ReleaseFolder = () => void;

/**
 * The locks of this process. Referenced here, because a connection without references is garbage-collected, and its lock
 * with it.
 */
const HELD = new Set<SqliteDatabase>();

/** Another process uses the folder. */
export class FolderInUse extends StartupError {}

/**
 * Locks the data folder for this process. The lock is an exclusive transaction on a separate small SQLite file: the
 * operating system releases it however the process ends, on every platform.
 *
 * @throws FolderInUse if another process uses the folder.
 * @throws StartupError if it cannot be written.
 */
export function lockFolder(path: string): ReleaseFolder {
  assertWritable(dirname(path), path);
  let connection: SqliteDatabase | undefined;
  try {
    connection = new SqliteDatabase(path, { create: true, readwrite: true });
    chmodSync(path, 0o600);
    connection.run(`PRAGMA busy_timeout = ${LOOK_TIMEOUT_MS}`);
    connection.run("BEGIN EXCLUSIVE");
  } catch (error) {
    connection?.close();
    if (/locked|busy/i.test(errorText(error))) {
      throw new FolderInUse(
        `Another Ninefold process is using this data folder (${path} is locked). Stop it first.`,
      );
    }
    throw new StartupError(`The data folder cannot be written (${path}: ${plainReason(error)}).`);
  }
  const lock = connection;
  HELD.add(lock);
  return () => {
    HELD.delete(lock);
    lock.run("ROLLBACK");
    lock.close();
    giveToFolderOwner(dirname(path));
  };
}

/**
 * SQLite's own errors do not tell a file of another user from a damaged one.
 *
 * @throws InaccessibleFile if the folder or a file in it cannot be written because of its owner, its mode or its file system.
 */
function assertWritable(folder: string, lock: string): void {
  const { database } = dataFilesOf(folder);
  for (const path of [folder, lock, database, `${database}-wal`])
    assertAccess("The data folder cannot be written", path, folder, "write");
}

/**
 * Whether a process uses the data folder; true also if that is unknown. This may change immediately afterwards.
 */
export function isFolderLocked(path: string): boolean {
  if (!existsSync(path)) return false;
  let connection: SqliteDatabase | undefined;
  try {
    // Not read-only: a killed process may have left a journal, which is rolled back first.
    connection = new SqliteDatabase(path, { readwrite: true, create: false });
    connection.query("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch {
    return true;
  } finally {
    connection?.close();
  }
}
