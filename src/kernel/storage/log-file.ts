import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, statSync } from "node:fs";
import { openFile, readWhole, writeAll } from "./folders.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";

/** Bytes read or written at a time. */
const SLICE_BYTES = 1024 * 1024;

/**
 * The write-ahead log of an open database as a file, for operations that SQLite does not have. SQLite takes no locks on
 * it, so closing it releases none.
 *
 * A failed sync must not simply be retried: the system may have marked the pages as clean without writing them, and the
 * next sync then succeeds. So everything that a failed sync was for must be written again.
 */
export class LogFile {
  /** Its path. */
  readonly path: string;
  /** Identity of the file that SQLite has open; a different file at the path must not be changed. */
  private readonly identity: string | null;
  /**
   * The database file. It stays open until the connection is closed: the system releases all locks of a process on a file
   * when the process closes it once, including those of SQLite.
   */
  private database: number | null = null;

  /** `databasePath` must not be a symbolic link: the log is next to the file itself. */
  constructor(
    private readonly databasePath: string,
    private readonly pageBytes: number,
  ) {
    this.path = `${databasePath}-wal`;
    this.identity = identityOf(this.path);
  }

  get isEmpty(): boolean {
    return (statSync(this.path, { throwIfNoEntry: false })?.size ?? 0) === 0;
  }

  /**
   * Truncates the log after a number of frames. A failed COMMIT may have left all of its frames, complete and with their
   * commit mark: a start after a kill would consider them committed.
   *
   * @throws Error if the disk does not confirm it.
   */
  cut(frames: number): void {
    this.withLog((log) => {
      const end = this.endOf(frames);
      // Written even if it is short enough: an earlier truncation may not have reached the disk.
      if (fstatSync(log).size <= end) ftruncateSync(log, end + 1);
      ftruncateSync(log, end);
      fsyncSync(log);
    });
  }

  /**
   * Writes everything again that a failed sync of a checkpoint may have lost: the log in place, and in the file the moved
   * pages that do not occur later in the log. SQLite does not sync moved pages while others follow, but records them as
   * moved: a later checkpoint would skip them, and the log would then be discarded.
   *
   * Readers and writers see no difference, because the bytes do not change. No checkpoint may run meanwhile.
   *
   * @throws Error if the disk does not confirm it.
   */
  rewrite(frames: number, movedFrames: number): void {
    this.withLog((log) => {
      this.rewriteLog(log, this.endOf(frames));
      this.rewriteMoved(log, frames, movedFrames);
    });
  }

  /** Closes the database file. Call after the connection was closed. */
  close(): void {
    if (this.database !== null) closeSync(this.database);
    this.database = null;
  }

  private rewriteLog(log: number, end: number): void {
    const slice = Buffer.allocUnsafe(SLICE_BYTES);
    for (let at = 0; at < end; ) {
      const size = readSync(log, slice, 0, Math.min(SLICE_BYTES, end - at), at);
      if (size === 0) throw new Error(`${this.path} is shorter than expected`);
      writeAll(log, slice.subarray(0, size), at);
      at += size;
    }
    fsyncSync(log);
  }

  private rewriteMoved(log: number, frames: number, movedFrames: number): void {
    this.database ??= openSync(this.databasePath, "r+");
    const database = this.database;
    const page = Buffer.allocUnsafe(this.pageBytes);
    for (const [number, offset] of this.newestPages(log, frames)) {
      // A page that occurs again later has not been moved: a checkpoint moves only the newest version of each page.
      if (offset >= this.endOf(movedFrames)) continue;
      if (readWhole(log, page, offset) < page.length)
        throw new Error(`${this.path} is shorter than expected`);
      writeAll(database, page, (number - 1) * this.pageBytes);
    }
    fsyncSync(database);
  }

  /** The position of the newest version of each page within the first frames of the log. */
  private newestPages(log: number, frames: number): Map<number, number> {
    const newest = new Map<number, number>();
    const header = Buffer.alloc(8);
    let pagesInFile = 0;
    for (let frame = 0; frame < frames; frame += 1) {
      const offset = this.startOf(frame);
      if (readWhole(log, header, offset) < header.length)
        throw new Error(`${this.path} is shorter than expected`);
      newest.set(header.readUInt32BE(0), offset + FRAME_HEADER_BYTES);
      // The last frame of a commit contains the size of the file: pages beyond it no longer exist.
      pagesInFile = header.readUInt32BE(4) || pagesInFile;
    }
    for (const number of newest.keys()) if (number > pagesInFile) newest.delete(number);
    return newest;
  }

  /** Length of a log with this many frames. */
  private endOf(frames: number): number {
    return frames === 0 ? 0 : this.startOf(frames);
  }

  /** Offset of the frame after this many frames. */
  private startOf(frames: number): number {
    return LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + this.pageBytes);
  }

  private withLog(use: (log: number) => void): void {
    using log = openFile(this.path, "r+");
    const { dev, ino } = fstatSync(log.fd);
    if (`${dev}:${ino}` !== this.identity) throw new Error(`${this.path} was replaced`);
    use(log.fd);
  }
}

/** Identity of the file at a path; null without one. */
export function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
