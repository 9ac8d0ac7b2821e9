import { closeSync, constants, fstatSync, fsyncSync, openSync, statfsSync, writeSync } from "node:fs";

/** Written and synced at a time: a commit that syncs the same file meanwhile waits for no more than this. */
const SLICE_BYTES = 128 * 1024;
/** Space that must remain free on the disk, for the data. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;

/**
 * Preallocates space in a write-ahead log: zeros after its content, synced, up to a length of the file. A commit is
 * written in place there, and its sync takes half the time of one that makes the file longer.
 *
 * SQLite may write to the log meanwhile. What is appended is written at the current end of the file, so it never
 * covers a frame. And zeros are no frame (its page would be 0): whatever a crash leaves of them, the log ends where it
 * did. Where there is no space on the disk, the log grows as it would anyway.
 *
 * @throws Error when a sync fails: it may have been for frames as well.
 */
export function preallocateLog(path: string, bytes: number, isUnwanted: () => boolean): void {
  const log = openOrNull(path);
  if (log === null) return;
  try {
    while (fstatSync(log).size < bytes && !isUnwanted() && appendZeros(log, path)) fsyncSync(log);
  } finally {
    closeSync(log);
  }
}

/** Null if it cannot be opened: then it needs no space, or cannot get any. Never creates one. */
function openOrNull(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_APPEND);
  } catch {
    return null;
  }
}

/** False: the disk has not enough free space. */
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
