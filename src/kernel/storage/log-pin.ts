import { Database as SqliteDatabase } from "bun:sqlite";
import { closeSync, openSync, readSync } from "node:fs";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";

/** How long a read transaction may have to wait until it begins. */
const BUSY_TIMEOUT_MS = 5_000;

/** A read transaction of a connection of its own. */
class Reader {
  private readonly connection: SqliteDatabase;

  constructor(path: string) {
    this.connection = new SqliteDatabase(path, { readwrite: true, create: false });
    this.connection.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    // Checkpoints are the server's.
    this.connection.run("PRAGMA wal_autocheckpoint = 0");
  }

  begin(): void {
    this.connection.run("BEGIN");
    // Only the first look at the file takes the snapshot.
    this.connection.query("SELECT count(*) FROM sqlite_master").get();
  }

  end(): void {
    this.connection.run("COMMIT");
  }

  /** How many pages the log holds, and how many of them have been moved into the file. */
  look(): { log: number; checkpointed: number } {
    const row = this.connection
      .query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)")
      .get();
    return { log: Math.max(0, row?.log ?? 0), checkpointed: Math.max(0, row?.checkpointed ?? 0) };
  }

  pageBytes(): number {
    return this.connection.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
  }

  close(): void {
    this.connection.close();
  }
}

/**
 * Keeps the write-ahead log of a live database from being begun anew, while the server writes on and moves pages from
 * the log into the file.
 *
 * What a reader's transaction began with cannot be taken from it. While one stands in the log, SQLite does not begin
 * the log anew; and no page newer than the transaction is moved into the file. So {@link renew} hands over to a newer
 * transaction from time to time, the new one before the old one ends: the log is held without a break, and what has to
 * be moved does not pile up.
 *
 * A transaction that begins when everything has been moved does not stand in the log, and does not hold it. As long as
 * that is so, nothing at all can be moved into the file: it stands still, and holds everything of the beginning.
 */
export class LogPin {
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
   * Whether the log has not been begun anew since it is held. The header of the file tells: each beginning writes
   * another one. This is what proves a copy; that the log is held only sees to it that the proof succeeds.
   */
  isLogWhole(): boolean {
    return this.header?.equals(this.readHeader()) === true;
  }

  close(): void {
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
    const file = openSync(this.logPath, "r");
    try {
      const header = Buffer.alloc(LOG_HEADER_BYTES);
      return header.subarray(0, readSync(file, header, 0, LOG_HEADER_BYTES, 0));
    } finally {
      closeSync(file);
    }
  }
}
