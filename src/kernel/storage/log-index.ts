import { closeSync, openSync, readSync, realpathSync } from "node:fs";

/** Bytes of the index's header, and where its numbers are in it, in the byte order of the machine. */
const HEADER_BYTES = 100;
const FRAMES_AT = 16 / 4;
const SALT_AT = 32 / 4;
const MOVED_AT = 96 / 4;

/** Pages in the write-ahead log, and how many of them have been moved into the file. */
export interface LogPages {
  readonly log: number;
  readonly moved: number;
  /** Differs after each restart of the log. */
  readonly salt: number;
}

/**
 * The header of a log's index, which SQLite's processes share (the file `-shm`). SQLite tells the size of the log only by a
 * statement, which takes twenty times as long, and the size is wanted after every commit.
 */
export class LogIndex {
  /**
   * Stays open until the connection is closed: the system releases all locks of a process on a file when the process
   * closes it once, including those of SQLite.
   */
  private readonly file: number;
  private readonly header = new Uint32Array(HEADER_BYTES / 4);
  private readonly bytes = new Uint8Array(this.header.buffer);

  /** Of a database that is open, and whose log SQLite has read. */
  constructor(databasePath: string) {
    this.file = openSync(`${realpathSync(databasePath)}-shm`, "r");
  }

  read(): LogPages {
    readSync(this.file, this.bytes, 0, HEADER_BYTES, 0);
    const { header } = this;
    return { log: header[FRAMES_AT] ?? 0, moved: header[MOVED_AT] ?? 0, salt: header[SALT_AT] ?? 0 };
  }

  /** Call after the connection was closed. */
  close(): void {
    closeSync(this.file);
  }
}
