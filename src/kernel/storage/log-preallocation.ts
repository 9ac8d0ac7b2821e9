import { closeSync, constants, fstatSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { syncLog } from "./log-file.ts";

/** Bytes written and synced at a time: a concurrent commit waits at most for the sync of this many. */
const SLICE_BYTES = 128 * 1024;
/** Space that must remain free on the disk, for the data. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;

/**
 * Preallocates space in a write-ahead log: appends zeros and syncs them, up to a length of the file. The sync of a commit
 * that is written in place takes half the time of one that makes the file longer.
 *
 * SQLite may write to the log meanwhile: zeros are only appended at the current end of the file, so they never overwrite
 * a frame. Zeros are not a valid frame (the page would be 0), so the log still ends after its last frame. Without space
 * on the disk nothing is preallocated.
 *
 * @throws SyncFailure if a sync fails, which may have included frames.
 */
export function preallocateLog(path: string, bytes: number, isUnwanted: () => boolean): void {
  const log = openOrNull(path);
  if (log === null) return;
  try {
    while (fstatSync(log).size < bytes && !isUnwanted() && appendZeros(log, path))
      syncLog(log, path, fsyncSync);
  } finally {
    closeSync(log);
  }
}

/** Opens an existing log; null if it does not exist or cannot be opened. */
function openOrNull(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND);
  } catch {
    return null;
  }
}

/** Appends zeros. False: the disk does not have enough free space. */
function appendZeros(log: number, path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path);
    if (bavail * bsize < FREE_BYTES_MIN) return false;
    writeSync(log, Buffer.alloc(SLICE_BYTES));
    return true;
  } catch {
    return false;
  }
}
