import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { fdatasyncSync, fstatSync, readSync, rmSync, statSync } from "node:fs";
import { openFile, writeAll } from "./folders.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";
import { OfflineDatabase } from "./offline.ts";

/** Bytes copied and synced at a time: few enough not to delay the fsync of a server. */
export const SLICE_BYTES = 1024 * 1024;
/** Attempts of a copy: the server may stop during it, or a restore replace the file. */
const ATTEMPTS_MAX = 3;

/** Called after each slice with the bytes copied and the total. An error thrown here ends the copy. */
type AfterSlice = (copied: number, total: number) => Promise<void>;

/**
 * Copies a database file while a server writes to it, without delaying the server. The copy is a complete database in one
 * file, with every change that was committed before the start of the copy. It is not synced yet.
 *
 * The pages of the copied file may be of different times, or torn. The log is copied after the file and repairs them: it
 * contains every page that the server moved into the file meanwhile, because it is not restarted ({@link LogPin}). SQLite
 * then recovers the copy as after a crash. No lock is taken that a writer waits for.
 *
 * For processes without another connection to the file: the system releases all locks of a process on a file when the
 * process closes the file once.
 *
 * @throws Error if a file cannot be read or written.
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

/** Copies once. False: the log was restarted or the file was replaced, and the copy is unusable. */
async function copyOnce(source: string, target: string, afterSlice: AfterSlice): Promise<boolean> {
  rmSync(`${target}-wal`, { force: true });
  // Closed after the connections: the system would release their locks on the file, and a server that stops meanwhile
  // would delete the log as its last user.
  using file = openFile(source, "r");
  using pin = new LogPin(source);
  const isWhole = await copyPinned(file.fd, pin, source, target, afterSlice);
  // A restore may have replaced the file after one of the two was opened.
  return isWhole && isStillAt(source, file.fd);
}

/** Whether a path still names the opened file. */
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
  // If the log is not pinned, the file has not changed, and contains everything from before the start.
  if (!pin.holdsLog) return true;
  const logBytes = pin.logBytes();
  using log = openFile(`${source}-wal`, "r");
  const total = fileBytes + logBytes;
  await copyBytes(log.fd, `${target}-wal`, logBytes, (copied) => renewing(fileBytes + copied, total));
  return pin.isLogWhole();
}

/** Copies this many bytes from the start of a file, or all of a shorter one. */
async function copyBytes(from: number, target: string, bytes: number, afterSlice: AfterSlice): Promise<void> {
  // Must not exist: a file of this name might be a link, or readable by others.
  rmSync(target, { force: true });
  using to = openFile(target, "wx", 0o600);
  const slice = Buffer.allocUnsafe(SLICE_BYTES);
  for (let copied = 0; copied < bytes; ) {
    const size = readSync(from, slice, 0, Math.min(SLICE_BYTES, bytes - copied), copied);
    if (size === 0) return;
    writeAll(to.fd, slice.subarray(0, size), copied);
    // Synced in steps: a single fsync of a gigabyte would delay those of the server.
    fdatasyncSync(to.fd);
    copied += size;
    await afterSlice(copied, bytes);
  }
}

/** Applies the log, so that the database is one file. */
function recover(path: string): void {
  using db = OfflineDatabase.change(path);
  if (!db.takeUpLog()) throw new Error(`${path} is in use`);
  db.get("PRAGMA journal_mode = DELETE");
}

/** Longest wait for the start of a read transaction. */
const BUSY_TIMEOUT_MS = 5_000;

/** A read transaction on a separate connection. */
class Reader extends SqliteDatabase {
  constructor(path: string) {
    super(path, { readwrite: true, create: false });
    this.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    // Only the server makes checkpoints.
    this.run("PRAGMA wal_autocheckpoint = 0");
  }

  begin(): void {
    this.run("BEGIN");
    // The snapshot is taken by the first read.
    this.query("SELECT count(*) FROM sqlite_master").get();
  }

  end(): void {
    this.run("COMMIT");
  }

  /**
   * Closes the connection. With `keepsLog`, SQLite moves the log into the file, but does not delete it, if no other connection is
   * left: the server was killed, and its next start needs the last commit of the log for its archive.
   */
  leave(keepsLog: boolean): void {
    this.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, keepsLog ? 1 : 0);
    this.close();
  }

  /** Pages in the log, and how many of them have been moved into the file. */
  look(): { log: number; checkpointed: number } {
    const row = this.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").get();
    return { log: Math.max(0, row?.log ?? 0), checkpointed: Math.max(0, row?.checkpointed ?? 0) };
  }

  pageBytes(): number {
    return this.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
  }
}

/**
 * Prevents a restart of the write-ahead log of a live database, while the server continues to write and to move pages
 * from the log into the file.
 *
 * While a read transaction uses the log, SQLite neither restarts the log nor moves pages that are newer than the
 * transaction. So {@link renew} replaces the transaction by a newer one from time to time, and begins the new one before
 * it ends the old one: the log is pinned without interruption, and the pages to move do not accumulate.
 *
 * A transaction that begins when all pages have been moved does not use the log, and does not pin it. Meanwhile no page
 * can be moved into the file: it does not change, and contains everything from before the start.
 */
class LogPin {
  /** Whether the log is pinned; once true it stays true. Otherwise the file does not change. */
  holdsLog = false;
  private readonly logPath: string;
  private readonly watcher: Reader;
  private held: Reader;
  private spare: Reader;
  private header: Buffer | null = null;

  /** Begins the first transaction. @throws Error if the file cannot be opened, or stays locked. */
  constructor(path: string) {
    this.logPath = `${path}-wal`;
    this.watcher = new Reader(path);
    this.held = new Reader(path);
    this.spare = new Reader(path);
    this.noteHold(this.begin(this.held));
  }

  /** Replaces the transaction by a new one, if that one pins the log too. */
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

  /** Bytes of the log file that are in use. */
  logBytes(): number {
    const { log } = this.watcher.look();
    return log === 0 ? 0 : LOG_HEADER_BYTES + log * (FRAME_HEADER_BYTES + this.watcher.pageBytes());
  }

  /**
   * Whether the log has not been restarted since it was pinned: every restart writes a different header. This proves that
   * the copy is complete; the pin only makes a restart impossible.
   */
  isLogWhole(): boolean {
    return this.header?.equals(this.readHeader()) === true;
  }

  [Symbol.dispose](): void {
    this.held.end();
    const hasFrames = this.watcher.look().log > 0;
    for (const reader of [this.held, this.spare, this.watcher]) reader.leave(hasFrames);
  }

  /** Begins a transaction. Returns whether it uses the log: not all pages had been moved. */
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
