import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { writeAll } from "./log-file.ts";
import { LogPin } from "./log-pin.ts";
import { OfflineDatabase } from "./offline.ts";

/** Bytes copied and synced at a time: small enough that a server's own fsync does not have to wait for them. */
export const SLICE_BYTES = 1024 * 1024;
/** How often a copy is begun again: the server stopped in the middle of it, or a restore put another file there. */
const ATTEMPTS_MAX = 3;

/** Called after each slice with the bytes copied so far and all there are. Whoever throws here ends the copying. */
type AfterSlice = (copied: number, total: number) => Promise<void>;

/**
 * Copies a database file while a server writes to it, without holding it up. The copy is a whole database of its own
 * in one file, and holds every change that was committed before this began; it is not synced yet.
 *
 * The bytes are copied as they are, page by page of different moments or even torn. What makes a database of them is
 * the log, which is copied after the file: every page that the server moved into the file meanwhile is in it, since
 * the log is held ({@link LogPin}). SQLite then recovers the copy as it would after a crash. Nothing on the way takes
 * a lock that a writer waits for.
 *
 * To be called in a process that has no other connection to the file: the system takes away all locks that a process has
 * on a file when the process closes it once.
 *
 * @throws Error when a file cannot be read or written.
 */
export async function copyLiveDatabase(
  source: string,
  target: string,
  afterSlice: AfterSlice,
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    if (await copyOnce(source, target, afterSlice)) {
      recover(target);
      return;
    }
  }
  throw new Error(
    "the database was replaced, or its write-ahead log begun anew, while it was copied; try again",
  );
}

/** False: the log was begun anew, or the file was replaced, and the copy is worth nothing. */
async function copyOnce(source: string, target: string, afterSlice: AfterSlice): Promise<boolean> {
  rmSync(`${target}-wal`, { force: true });
  const file = openSync(source, "r");
  try {
    const pin = new LogPin(source);
    try {
      const isWhole = await copyPinned(file, pin, source, target, afterSlice);
      // A restore may have put another file in its place, between the opening of the one and of the other.
      return isWhole && isStillAt(source, file);
    } finally {
      pin.close();
    }
  } finally {
    // After the connections: the system would take away their locks on a file that the same process closes, and a
    // server that stops meanwhile would delete the log as the last one to use it.
    closeSync(file);
  }
}

/** Whether a path still names the file that was opened by it. */
function isStillAt(path: string, file: number): boolean {
  const now = statSync(path, { bigint: true, throwIfNoEntry: false });
  const opened = fstatSync(file, { bigint: true });
  return now?.ino === opened.ino && now.dev === opened.dev;
}

async function copyPinned(
  file: number,
  pin: LogPin,
  source: string,
  target: string,
  afterSlice: AfterSlice,
): Promise<boolean> {
  const renewing: AfterSlice = async (copied, total) => {
    pin.renew();
    await afterSlice(copied, total);
  };
  const fileBytes = fstatSync(file).size;
  await copyBytes(file, target, fileBytes, renewing);
  // Where the log is not held, the file stood still, and holds everything that had been written at the beginning.
  if (!pin.holdsLog) return true;
  const logBytes = pin.logBytes();
  const log = openSync(`${source}-wal`, "r");
  try {
    const total = fileBytes + logBytes;
    await copyBytes(log, `${target}-wal`, logBytes, (copied) => renewing(fileBytes + copied, total));
  } finally {
    closeSync(log);
  }
  return pin.isLogWhole();
}

/** Copies so many bytes from the beginning of a file, or all that it has. */
async function copyBytes(from: number, target: string, bytes: number, afterSlice: AfterSlice): Promise<void> {
  // Made anew: what lay there under this name might be somebody else's, a link or readable by others.
  rmSync(target, { force: true });
  const to = openSync(target, "wx", 0o600);
  try {
    const slice = Buffer.allocUnsafe(SLICE_BYTES);
    for (let copied = 0; copied < bytes; ) {
      const size = readSync(from, slice, 0, Math.min(SLICE_BYTES, bytes - copied), copied);
      if (size === 0) return;
      writeAll(to, slice.subarray(0, size), copied);
      // Now rather than all at the end: an fsync of a gigabyte would stand in the way of the server's own.
      fdatasyncSync(to);
      copied += size;
      await afterSlice(copied, bytes);
    }
  } finally {
    closeSync(to);
  }
}

/** Takes up the log, and leaves one file that needs no other beside it, not even to be read. */
function recover(path: string): void {
  const db = OfflineDatabase.change(path);
  try {
    const row = db.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)");
    if (row?.busy === 1) throw new Error(`${path} is in use`);
    db.get("PRAGMA journal_mode = DELETE");
  } finally {
    db.close();
  }
}
