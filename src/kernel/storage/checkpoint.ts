import type { Database as SqliteDatabase } from "bun:sqlite";
import { syncLog } from "./log-file.ts";

/** Index in the shared state: 1 while a checkpoint runs; its end notifies the waiters. */
export const AT_WORK = 0;
/** Index in the shared state: 1 once the server closes, and no more space is preallocated. */
export const CLOSING = 1;

/** Requests one PASSIVE checkpoint of the file at `path`, and preallocated space in its log. */
export interface CheckpointRequest {
  readonly path: string;
  /** Pages of the WAL that had been moved into the file when this was sent. */
  readonly movedPages: number;
  readonly logPath: string;
  /** The log, open since before anything was written to it; null: nothing is synced. */
  readonly logFile: number | null;
  /** How long the log's file should be at the least. */
  readonly logBytes: number;
  /** Whether later commits must stay in the log; the worker replies {@link HOLDS} once they do. */
  readonly holdsLaterCommits: boolean;
  /** Shared with the worker: see {@link AT_WORK} and {@link CLOSING}. */
  readonly state: Int32Array;
}

/** From here on this pass moves nothing that is committed later. */
export const HOLDS = "holds";

/** What a checkpoint came to. */
export interface CheckpointReply {
  /** Whether there was something to move, and nothing was. */
  readonly stuck: boolean;
  /** What went wrong: the disk is full, say. */
  readonly failure: string | null;
  /** The file whose sync failed, if that was it. */
  readonly failedSync: string | null;
}

/**
 * Runs one checkpoint on the given connection. SQLite syncs the log before it moves a page, but through a descriptor that was
 * opened for this pass: a failure that was reported to another one before is not reported to it, and its sync succeeds although
 * the disk does not have the log. So the log is synced through `logFile` first, when SQLite has opened its own.
 *
 * @throws SyncFailure, SQLiteError
 */
export function runCheckpoint(
  connection: SqliteDatabase,
  { movedPages, logPath, logFile }: Pick<CheckpointRequest, "movedPages" | "logPath" | "logFile">,
): CheckpointReply {
  // Opens the log.
  connection.query("SELECT count(*) FROM sqlite_master").get();
  if (logFile !== null) syncLog(logFile, logPath);
  const row = connection
    .query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)")
    .get();
  const stuck = row !== null && row.checkpointed < row.log && row.checkpointed === movedPages;
  return { stuck, failure: null, failedSync: null };
}
