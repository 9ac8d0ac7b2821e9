import { SQLiteError } from "bun:sqlite";
import { errorCode, errorText } from "../errors.ts";

const STORAGE_FAILURES = [
  ...["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CORRUPT"],
  ...["SQLITE_NOMEM", "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_PROTOCOL"],
];

/** An operation on a file failed that SQLite does not do. */
export class StorageFailure extends Error {}

/**
 * A sync failed. The system may count what it was for as clean, and confirm the next sync without writing it; so it is not
 * repeated, and this process cannot go on.
 */
export class SyncFailure extends StorageFailure {
  constructor(
    readonly path: string,
    readonly reason: string,
  ) {
    super(`${path} could not be synced: ${reason}`);
  }
}

/** The failed sync that an error is, of a database or its log; null for every other error. */
export function syncFailureOf(error: unknown, databasePath: string): SyncFailure | null {
  if (error instanceof SyncFailure) return error;
  const isSync = /^SQLITE_IOERR_(DIR_)?FSYNC/.test(errorCode(error));
  return isSync ? new SyncFailure(databasePath, plainReason(error)) : null;
}

/** Whether an error means that the file cannot be written or read now, and not that a statement is wrong. */
export function isStorageFailure(error: unknown): boolean {
  if (error instanceof StorageFailure) return true;
  const code = errorCode(error);
  return STORAGE_FAILURES.some((failure) => code.startsWith(failure));
}

/** The reason of an error for the operator: the message of SQLite, or of a failed operation, without the name of its class. */
export function plainReason(error: unknown): string {
  return error instanceof SQLiteError || error instanceof StorageFailure ? error.message : errorText(error);
}

/** Whether an error means that the content of the file is damaged. */
export function isDamage(error: unknown): boolean {
  const code = errorCode(error);
  return code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB");
}

/** Whether an error means that the disk fails. A file that ends too early is damaged instead. */
export function isReadFailure(error: unknown): boolean {
  const code = errorCode(error);
  return code.startsWith("SQLITE_IOERR") && code !== "SQLITE_IOERR_SHORT_READ";
}

/** Whether an error means that the disk is full. */
export function isDiskFull(error: unknown): boolean {
  return errorCode(error).startsWith("SQLITE_FULL");
}
