import { Database as SqliteDatabase } from "bun:sqlite";
import { fdatasyncSync, fstatSync, readSync, rmSync, statSync } from "node:fs";
import { openFile } from "./folders.ts";
import { writeAll } from "./log-file.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";
import { OfflineDatabase } from "./offline.ts";

/** Bytes copied and synced at a time: small enough that a server's own fsync does not have to wait for them. */
export const SLICE_BYTES = 1024 * 1024;
/** How often a copy is begun again: the server stopped in the middle of it, or a restore put another file there. */
const ATTEMPTS_MAX = 3;

/** Called after each slice with the bytes copied and the total. An error thrown here ends the copy. */
type AfterSlice = (copied: number, total: number) => Promise<void>;

/**
 * Copies a database file while a server writes to it, without holding it up. The copy is a whole database of its own
 * in one file, and holds every change that was committed before this began; it is not synced yet.
 *
 * The bytes are copied as they are, page by page of different times or even torn. What makes a database of them is
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
  throw new Error("the database was replaced, or its write-ahead log restarted, during the copy; retry");
}

/** False: the log was restarted or the file was replaced, and the copy is unusable. */
async function copyOnce(source: string, target: string, afterSlice: AfterSlice): Promise<boolean> {
  rmSync(`${target}-wal`, { force: true });
  // Closed after the connections: the system would take away their locks on a file that the same process closes, and a
  // server that stops meanwhile would delete the log as the last one to use it.
  using file = openFile(source, "r");
  using pin = new LogPin(source);
  const isWhole = await copyPinned(file.fd, pin, source, target, afterSlice);
  // A restore may have put another file in its place, between the opening of the one and of the other.
  return isWhole && isStillAt(source, file.fd);
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
  using log = openFile(`${source}-wal`, "r");
  const total = fileBytes + logBytes;
  await copyBytes(log.fd, `${target}-wal`, logBytes, (copied) => renewing(fileBytes + copied, total));
  return pin.isLogWhole();
}

/** Copies so many bytes from the beginning of a file, or all that it has. */
async function copyBytes(from: number, target: string, bytes: number, afterSlice: AfterSlice): Promise<void> {
  // Created new: an existing file of this name might be a link, or readable by others.
  rmSync(target, { force: true });
  using to = openFile(target, "wx", 0o600);
  const slice = Buffer.allocUnsafe(SLICE_BYTES);
  for (let copied = 0; copied < bytes; ) {
    const size = readSync(from, slice, 0, Math.min(SLICE_BYTES, bytes - copied), copied);
    if (size === 0) return;
    writeAll(to.fd, slice.subarray(0, size), copied);
    // Now rather than all at the end: an fsync of a gigabyte would stand in the way of the server's own.
    fdatasyncSync(to.fd);
    copied += size;
    await afterSlice(copied, bytes);
  }
}

/** Applies the log, and leaves a single file that can be read without any other. */
function recover(path: string): void {
  using db = OfflineDatabase.change(path);
  if (!db.takeUpLog()) throw new Error(`${path} is in use`);
  db.get("PRAGMA journal_mode = DELETE");
}

/** How long a read transaction may have to wait until it begins. */
const BUSY_TIMEOUT_MS = 5_000;

/** A read transaction of a connection of its own. */
class Reader extends SqliteDatabase {
  constructor(path: string) {
    super(path, { readwrite: true, create: false });
    this.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    // Checkpoints are the server's.
    this.run("PRAGMA wal_autocheckpoint = 0");
  }

  begin(): void {
    this.run("BEGIN");
    // Only the first look at the file takes the snapshot.
    this.query("SELECT count(*) FROM sqlite_master").get();
  }

  end(): void {
    this.run("COMMIT");
  }

  /** How many pages the log holds, and how many of them have been moved into the file. */
  look(): { log: number; checkpointed: number } {
    const row = this.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
    return { log: Math.max(0, row?.log ?? 0), checkpointed: Math.max(0, row?.checkpointed ?? 0) };
  }

  pageBytes(): number {
    return this.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
  }
}

/**
 * Keeps the write-ahead log of a live database from being restarted, while the server writes on and moves pages from
 * the log into the file.
 *
 * What a reader's transaction began with cannot be taken from it. While one stands in the log, SQLite does not begin
 * the log again; and no page newer than the transaction is moved into the file. So {@link renew} hands over to a newer
 * transaction from time to time, the new one before the old one ends: the log is held without a break, and what has to
 * be moved does not pile up.
 *
 * A transaction that begins when everything has been moved does not stand in the log, and does not hold it. As long as
 * that is so, nothing at all can be moved into the file: it stands still, and holds everything of the beginning.
 */
class LogPin {
  /** Whether the log is held. Otherwise the file stands still. Once true it stays so. */
  holdsLog = false;
  private readonly logPath: string;
  private readonly watcher: Reader;
  private held: Reader;
  private spare: Reader;
  private header: Buffer | null = null;

  /** Takes hold. @throws Error when the file cannot be opened, or is locked for long. */
  constructor(path: string) {
    this.logPath = `${path}-wal`;
    this.watcher = new Reader(path);
    this.held = new Reader(path);
    this.spare = new Reader(path);
    this.noteHold(this.begin(this.held));
  }

  /** Hands over to a transaction of now, where that one holds the log as well. */
  renew(): void {
    const next = this.spare;
    if (!this.begin(next)) {
      next.end();
      return;
    }
    this.noteHold(true);
    this.spare = this.held;
    this.held = next;
    this.spare.end();
  }

  /** How many bytes of the log file count now. */
  logBytes(): number {
    const { log } = this.watcher.look();
    return log === 0 ? 0 : LOG_HEADER_BYTES + log * (FRAME_HEADER_BYTES + this.watcher.pageBytes());
  }

  /**
   * Whether the log has not been restarted since it is held. The header of the file shows: each beginning writes
   * another one. This is what proves a copy; that the log is held only sees to it that the proof succeeds.
   */
  isLogWhole(): boolean {
    return this.header?.equals(this.readHeader()) === true;
  }

  [Symbol.dispose](): void {
    this.held.end();
    for (const reader of [this.held, this.spare, this.watcher]) reader.close();
  }

  /** Begins a transaction. Returns whether it stands in the log: not all that it sees had been moved when it began. */
  private begin(reader: Reader): boolean {
    const before = this.watcher.look();
    reader.begin();
    return this.watcher.look().checkpointed < before.log;
  }

  private noteHold(holdsLog: boolean): void {
    if (!holdsLog || this.holdsLog) return;
    this.holdsLog = true;
    this.header = this.readHeader();
  }

  private readHeader(): Buffer {
    using file = openFile(this.logPath, "r");
    const header = Buffer.alloc(LOG_HEADER_BYTES);
    return header.subarray(0, readSync(file.fd, header, 0, LOG_HEADER_BYTES, 0));
  }
}
