import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { openFile } from "./folders.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "./log-scan.ts";

/** Read or written at a time. */
const SLICE_BYTES = 1024 * 1024;

/**
 * The write-ahead log of an open database as a file: for what SQLite has no word for. SQLite takes no locks on it, so
 * opening and closing it takes none away.
 *
 * A sync that failed is no sync that can be retried: the system may have taken the pages for clean without having
 * written them, and the next sync says that all is well. So whatever a failed sync was for has to be written again.
 */
export class LogFile {
  /** Where it lies. */
  readonly path: string;
  /** Which file SQLite has open. Should another one lie there now, it is somebody else's. */
  private readonly identity: string | null;
  /**
   * The database file. It stays open until the connection is closed: the system takes away all locks that a process
   * has on a file when the process closes it once, SQLite's included.
   */
  private database: number | null = null;

  /** `databasePath` leads to the file itself: the log lies next to it. */
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
   * Takes away what lies behind so many frames. A COMMIT that failed may have left all of its frames there, whole and
   * with their mark: a start after a kill would take them for committed.
   *
   * @throws Error when the disk does not confirm it.
   */
  cut(frames: number): void {
    this.withLog((log) => {
      const end = this.endOf(frames);
      // A change even where it is short enough: an earlier cut may not have reached the disk.
      if (fstatSync(log).size <= end) ftruncateSync(log, end + 1);
      ftruncateSync(log, end);
      fsyncSync(log);
    });
  }

  /**
   * Writes everything again that a failed sync of a checkpoint may have lost: the log onto itself, and into the file the
   * pages that have been moved and stand nowhere later in the log. SQLite moves pages without a sync as long as others follow,
   * and takes note of it; a later checkpoint would not touch them again, and the log would be given up over them.
   *
   * Neither a reader nor a writer sees a difference: all bytes are those that stand there. No checkpoint may run
   * meanwhile.
   *
   * @throws Error when the disk does not confirm it.
   */
  rewrite(frames: number, movedFrames: number): void {
    this.withLog((log) => {
      this.rewriteLog(log, this.endOf(frames));
      this.rewriteMoved(log, frames, movedFrames);
    });
  }

  /** Closes its file, after the connection was closed. */
  close(): void {
    if (this.database !== null) closeSync(this.database);
    this.database = null;
  }

  private rewriteLog(log: number, end: number): void {
    const slice = Buffer.allocUnsafe(SLICE_BYTES);
    for (let at = 0; at < end; ) {
      const size = readSync(log, slice, 0, Math.min(SLICE_BYTES, end - at), at);
      if (size === 0) throw new Error(`${this.path} is shorter than it must be`);
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
      // A page that comes again later has not been moved either: a checkpoint moves the newest of each alone.
      if (offset >= this.endOf(movedFrames)) continue;
      if (readSync(log, page, 0, page.length, offset) < page.length)
        throw new Error(`${this.path} is shorter than it must be`);
      writeAll(database, page, (number - 1) * this.pageBytes);
    }
    fsyncSync(database);
  }

  /** Where in the log the newest version of each page stands, within so many frames. */
  private newestPages(log: number, frames: number): Map<number, number> {
    const newest = new Map<number, number>();
    const header = Buffer.alloc(8);
    let pagesInFile = 0;
    for (let frame = 0; frame < frames; frame += 1) {
      const offset = this.startOf(frame);
      readSync(log, header, 0, header.length, offset);
      newest.set(header.readUInt32BE(0), offset + FRAME_HEADER_BYTES);
      // A commit's last frame says how large the file is since then: pages beyond are no part of it any more.
      pagesInFile = header.readUInt32BE(4) || pagesInFile;
    }
    for (const number of newest.keys()) if (number > pagesInFile) newest.delete(number);
    return newest;
  }

  /** Where the log ends that has so many frames. */
  private endOf(frames: number): number {
    return frames === 0 ? 0 : this.startOf(frames);
  }

  /** Where a frame begins that so many stand before. */
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

/** Writes all of it: the last write before a full disk may take a part only, and the next one says why. */
export function writeAll(file: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(file, bytes, written, bytes.length - written, position + written);
  }
}

/** Says which file stands at a path; null: none. */
export function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
