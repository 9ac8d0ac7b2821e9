import { constants, Database as SqliteDatabase } from "bun:sqlite";
import { pathToFileURL } from "node:url";
import type { SqlValue } from "./database.ts";

/**
 * A connection to a database file that no server uses: a copy, or a file that is about to become one. Without the
 * writer and its units of work, which are for what is live.
 */
export class OfflineDatabase {
  private constructor(private readonly connection: SqliteDatabase) {}

  /** For reading alone: not a byte of the file changes, and nothing appears next to it. */
  static read(path: string): OfflineDatabase {
    const address = `${pathToFileURL(path).href}?immutable=1`;
    const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
    return new OfflineDatabase(new SqliteDatabase(address, flags));
  }

  /**
   * For changing. A log next to the file is applied immediately. Nothing is synced on the way: the process that opens it
   * does that at the end, for the whole file.
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

  /** The rows one by one, however many. */
  rows<Row>(sql: string, ...params: SqlValue[]): IterableIterator<Row> {
    return this.connection.query<Row, SqlValue[]>(sql).iterate(...params);
  }

  /** Bytes of a page of the file. */
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

  /** The log's mode is stored in the file: a server that starts need not take it exclusively to set it. */
  useWriteAheadLog(): void {
    this.get("PRAGMA journal_mode = WAL");
  }

  /** Closes it: a connection is to be declared with `using`. */
  [Symbol.dispose](): void {
    this.connection.close();
  }
}

/**
 * Leaves a database that is whole in its one file: a log next to it is moved into it, and an interrupted change taken
 * back, as the next start would do. Synced.
 *
 * @throws Error when the file is no database or damaged, another program reads it, or the disk is full; the log stays
 *   then.
 */
export function settleFile(path: string): void {
  using db = OfflineDatabase.change(path);
  db.execute("PRAGMA synchronous = FULL");
  db.get("SELECT count(*) FROM sqlite_master");
  if (!db.takeUpLog()) throw new Error("another program is reading it");
}
