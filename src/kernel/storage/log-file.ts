import {
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { errorText } from "../errors.ts";
import { openFile, writeAll } from "./folders.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";
import { StorageFailure, SyncFailure } from "./storage-failures.ts";

/** Bytes read or written at a time. */
const SLICE_BYTES = 1024 * 1024;

/** A write-ahead log, wherever it is opened. */
export interface LogIdentity {
  readonly path: string;
  /** Of the file that SQLite has open; a different file at the path must be neither changed nor synced. */
  readonly identity: string | null;
}

/**
 * The write-ahead log of an open database as a file, for operations that SQLite does not have. SQLite takes no locks on
 * it, so closing it releases none.
 */
export class LogFile implements LogIdentity {
  readonly path: string;
  readonly identity: string | null;

  constructor(
    databasePath: string,
    private readonly pageBytes: number,
  ) {
    // Next to the file itself, if the path is a symbolic link.
    this.path = `${realpathSync(databasePath)}-wal`;
    this.identity = identityOf(this.path);
  }

  get isEmpty(): boolean {
    return (statSync(this.path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  }

  /** Makes everything durable that is committed. @throws SyncFailure if the disk does not confirm it. */
  sync(): void {
    using log = openLog(this);
    syncLog(log.fd, this.path);
  }

  /**
   * Truncates the log after a number of frames. A failed COMMIT may have left all of its frames, complete and with their
   * commit mark: a start after a kill would consider them committed.
   *
   * @throws SyncFailure if the disk does not confirm it. @throws Error if the log cannot be changed.
   */
  cut(frames: number): void {
    using log = openLog(this);
    this.truncate(log.fd, frames);
    syncLog(log.fd, this.path, fsyncSync);
  }

  private truncate(log: number, frames: number): void {
    const end = frames === 0 ? 0 : LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + this.pageBytes);
    // Written even if it is short enough: an earlier truncation may not have reached the disk.
    if (fstatSync(log).size <= end) ftruncateSync(log, end + 1);
    ftruncateSync(log, end);
  }
}

/**
 * Writes a log again that an earlier process has left, and syncs it. If that process ended because a sync had failed, the
 * system may count pages of the log as clean that are not on the disk: no sync alone would write them.
 *
 * Before SQLite opens the database: a connection moves the log into the file even when it is closed after this has failed.
 *
 * @throws StorageFailure, SyncFailure if the disk does not take or confirm it.
 */
export function rewriteLog(path: string): void {
  try {
    if (!existsSync(path)) return;
    using log = openFile(path, "r+");
    const slice = Buffer.allocUnsafe(SLICE_BYTES);
    for (let at = 0; ; ) {
      const size = readSync(log.fd, slice, 0, SLICE_BYTES, at);
      if (size === 0) break;
      writeAll(log.fd, slice.subarray(0, size), at);
      at += size;
    }
    syncLog(log.fd, path, fsyncSync);
  } catch (error) {
    throw error instanceof SyncFailure ? error : new StorageFailure(`${path}: ${errorText(error)}`);
  }
}

/** Opens a log. @throws Error if it is not the file that SQLite has open. */
export function openLog({ path, identity }: LogIdentity): ReturnType<typeof openFile> {
  const log = openFile(path, "r+");
  const { dev, ino } = fstatSync(log.fd);
  if (`${dev}:${ino}` === identity) return log;
  log[Symbol.dispose]();
  throw new Error(`${path} was replaced`);
}

/** Syncs an open log. @throws SyncFailure */
export function syncLog(log: number, path: string, sync = fdatasyncSync): void {
  try {
    sync(log);
  } catch (error) {
    throw new SyncFailure(path, errorText(error));
  }
}

/** Identity of the file at a path; null without one. */
export function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
