import { constants, Database as SqliteDatabase } from "bun:sqlite";
import type { SqlValue } from "./database.ts";

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
 * Moves a log into its database and rolls back an interrupted change, as the next start would do. Synced.
 *
 * @throws Error if the file is not a database or is damaged, another program reads it, or the disk is full; then the log
 *   stays.
 */
export function settleFile(path: string): void {
  using db = OfflineDatabase.change(path);
  db.execute("PRAGMA synchronous = FULL");
  db.get("SELECT count(*) FROM sqlite_master");
  if (!db.takeUpLog()) throw new Error("another program is reading it");
}
