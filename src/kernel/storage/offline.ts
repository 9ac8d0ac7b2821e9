import { constants, Database as SqliteDatabase } from "bun:sqlite";
import type { SqlValue } from "./database.ts";
import { openFile, readWhole } from "./folders.ts";
import { LogFile, rewriteLog } from "./log-file.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, type LogScan, scanLog } from "./log-scan.ts";

/**
 * A connection to a database file that no server uses, such as a copy. It has no writer and no units of work.
 */
export class OfflineDatabase {
  private constructor(private readonly connection: SqliteDatabase) {}

  /** Opens a file read-only: neither the file nor its folder changes. */
  static read(path: string): OfflineDatabase {
    const address = `${Bun.pathToFileURL(path).href}?immutable=1`;
    const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
    return new OfflineDatabase(new SqliteDatabase(address, flags));
  }

  /** Opens a file read-only with its log, which stays as it is. */
  static readWithLog(path: string): OfflineDatabase {
    return new OfflineDatabase(new SqliteDatabase(path, { readonly: true }));
  }

  /**
   * Opens a file to change it. A log next to the file is applied immediately. Nothing is synced: the caller syncs the whole
   * file at the end.
   */
  static change(path: string): OfflineDatabase {
    const connection = new SqliteDatabase(path, { readwrite: true, create: false, strict: true });
    connection.run("PRAGMA synchronous = OFF");
    return new OfflineDatabase(connection);
  }

  /** The first row, or null. */
  get<Row>(sql: string, ...params: SqlValue[]): Row | null {
    return this.connection.query<Row, SqlValue[]>(sql).get(...params);
  }

  all<Row>(sql: string, ...params: SqlValue[]): Row[] {
    return this.connection.query<Row, SqlValue[]>(sql).all(...params);
  }

  /** Iterates over the rows. */
  rows<Row>(sql: string, ...params: SqlValue[]): IterableIterator<Row> {
    return this.connection.query<Row, SqlValue[]>(sql).iterate(...params);
  }

  /** Page size of the file, in bytes. */
  get pageBytes(): number {
    return this.get<{ page_size: number }>("PRAGMA page_size")?.page_size ?? 1;
  }

  hasTable(name: string): boolean {
    return this.get("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name) !== null;
  }

  execute(sql: string, ...params: SqlValue[]): void {
    this.connection.run(sql, params);
  }

  /** Moves the log into the file. False: another program reads it, and the log stays. */
  takeUpLog(): boolean {
    return this.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)")?.busy !== 1;
  }

  /** Stores the journal mode in the file, so that a server does not need an exclusive lock to set it. */
  useWriteAheadLog(): void {
    this.get("PRAGMA journal_mode = WAL");
  }

  /** Closes the connection: declare it with `using`. */
  [Symbol.dispose](): void {
    this.connection.close();
  }
}

/**
 * Removes the last commit from the log of a database that no program has open. It is durable when this returns. False: the
 * log has none, or it was moved into the file, as by a backup that outlived its server.
 *
 * @throws Error if the disk fails.
 */
export function cutLastCommit(path: string): boolean {
  const scan = scanLog(`${path}-wal`);
  if (scan === null || scan.commits === 0) return false;
  const pageBytes = pageBytesOf(path);
  if (isMoved(path, scan, pageBytes)) return false;
  new LogFile(path, pageBytes).cut(scan.framesBefore);
  return true;
}

function pageBytesOf(path: string): number {
  using db = OfflineDatabase.read(path);
  return db.pageBytes;
}

/**
 * Whether the file has pages of the last commit in its log. A checkpoint moves pages in the order of their numbers, so the first
 * one says it: others can be as the commit left them because it wrote them without a change.
 */
function isMoved(path: string, { frames, framesBefore }: LogScan, pageBytes: number): boolean {
  using log = openFile(`${path}-wal`, "r");
  using file = openFile(path, "r");
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
  const page = Buffer.alloc(pageBytes);
  let first = Number.POSITIVE_INFINITY;
  let isFirstMoved = false;
  for (let index = framesBefore; index < frames; index += 1) {
    readWhole(log.fd, frame, LOG_HEADER_BYTES + index * frame.length);
    const number = frame.readUInt32BE(0);
    if (number > first) continue;
    first = number;
    const found = readWhole(file.fd, page, (number - 1) * pageBytes);
    isFirstMoved = found === pageBytes && frame.subarray(FRAME_HEADER_BYTES).equals(page);
  }
  return isFirstMoved;
}

/**
 * Moves a log into its database and rolls back an interrupted change, as the next start would do. Synced.
 *
 * @throws Error if the file is not a database or is damaged, another program reads it, or the disk is full; then the log
 *   stays.
 */
export function settleFile(path: string): void {
  rewriteLog(`${path}-wal`);
  using db = OfflineDatabase.change(path);
  db.execute("PRAGMA synchronous = FULL");
  db.get("SELECT count(*) FROM sqlite_master");
  if (!db.takeUpLog()) throw new Error("another program is reading it");
}
