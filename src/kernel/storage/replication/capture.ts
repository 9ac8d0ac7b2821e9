import { closeSync, openSync, readSync } from "node:fs";
import type { Database } from "../database.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES } from "../log-scan.ts";
import { StorageFailure } from "../storage-failures.ts";
import { type Entry, PAGE_BYTES, PAGE_RECORD_BYTES, payloadOf } from "./entry.ts";

const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES;
/**
 * Frames of a commit for which two buffers of 1 MiB are used again and again: new ones for each commit make garbage collections
 * frequent.
 */
const BUFFERED_FRAMES_MAX = 256;

/** The pages that a commit has changed. */
export type CapturedPages = Pick<Entry, "filePages" | "payload">;

/** Another program writes to the database, so the pages of a commit cannot be told from its pages. */
class ForeignWriter extends StorageFailure {
  constructor(what: string) {
    super(
      `another program writes to the database (${what}); end it, and start the server again. ` +
        "With an archive or a commit log, only the server may write.",
    );
  }
}

/**
 * Reads the pages of each commit from the write-ahead log, directly after the COMMIT and before anything can restart the
 * log. The log may be moved into the file and restarted between two commits, as without it.
 */
export class Capture {
  private readonly header = Buffer.alloc(LOG_HEADER_BYTES);
  private readonly frameBuffer = Buffer.allocUnsafeSlow(BUFFERED_FRAMES_MAX * FRAME_BYTES);
  private readonly payloadBuffer = Buffer.allocUnsafeSlow(BUFFERED_FRAMES_MAX * PAGE_RECORD_BYTES);
  private log: number | null = null;
  /** Frames of the log that have been captured, and the salts of the log that they are in. */
  private frames = 0;
  private salts: bigint | null = null;

  constructor(private readonly db: Database) {
    this.markCaptured();
  }

  /** From here on everything that the log holds counts as captured. */
  markCaptured(): void {
    this.frames = this.db.logPages().log;
    this.salts = this.readSalts();
  }

  /** Call before BEGIN. @throws ForeignWriter if the log has grown or was restarted since the last capture. */
  assertUnchanged(): void {
    const { log } = this.db.logPages();
    // An empty log is one that was moved into the file and truncated.
    if (log === 0) return;
    if (log !== this.frames) throw new ForeignWriter(`${log} frames in the log instead of ${this.frames}`);
    if (this.readSalts() !== this.salts) throw new ForeignWriter("the log was restarted");
  }

  /**
   * Call directly after COMMIT. Null: the commit changed nothing. The payload is valid until the next call.
   *
   * @throws ForeignWriter
   */
  take(): CapturedPages | null {
    const { log: frames } = this.db.logPages();
    const salts = this.readSalts();
    const from = salts === this.salts ? this.frames : 0;
    if (frames === from) return null;
    if (salts === null || frames < from) throw new ForeignWriter("the log was truncated");
    const bytes = this.readFrames(from, frames - from);
    this.frames = frames;
    this.salts = salts;
    return pagesOf(bytes, salts, this.payloadBuffer);
  }

  /** The pages of the last commit in the log, as an earlier process left it; null for an empty log. @throws ForeignWriter */
  lastCommit(): CapturedPages | null {
    const { log: frames } = this.db.logPages();
    const salts = this.readSalts();
    if (frames === 0 || salts === null) return null;
    let from = frames - 1;
    while (from > 0 && this.readFrames(from - 1, 1).readUInt32BE(4) === 0) from -= 1;
    return pagesOf(this.readFrames(from, frames - from), salts, null);
  }

  /** Closes the file of the log. */
  close(): void {
    if (this.log !== null) closeSync(this.log);
    this.log = null;
  }

  /** The salts in the header of the log; null while it has none. */
  private readSalts(): bigint | null {
    // SQLite takes no locks on the log, so closing it later releases none.
    this.log ??= openSync(this.db.logPath, "r");
    const size = readSync(this.log, this.header, 0, LOG_HEADER_BYTES, 0);
    return size < LOG_HEADER_BYTES ? null : this.header.readBigUInt64BE(16);
  }

  /** The result is valid until the next call. */
  private readFrames(from: number, count: number): Buffer {
    const size = count * FRAME_BYTES;
    const bytes =
      count <= BUFFERED_FRAMES_MAX ? this.frameBuffer.subarray(0, size) : Buffer.allocUnsafe(size);
    const start = LOG_HEADER_BYTES + from * FRAME_BYTES;
    for (let at = 0; at < bytes.length; ) {
      const read = readSync(this.log ?? -1, bytes, at, bytes.length - at, start + at);
      if (read === 0) throw new ForeignWriter("the log is shorter than its frames");
      at += read;
    }
    return bytes;
  }
}

/** The last version of each page in the frames of one commit, ascending. */
function pagesOf(frames: Buffer, salts: bigint, buffer: Buffer | null): CapturedPages {
  const end = frames.length - FRAME_BYTES;
  const filePages = frames.readUInt32BE(end + 4);
  const newest = new Map<number, Uint8Array>();
  for (let at = 0; at <= end; at += FRAME_BYTES) {
    const isMark = frames.readUInt32BE(at + 4) !== 0;
    if (frames.readBigUInt64BE(at + 8) !== salts || isMark !== (at === end))
      throw new ForeignWriter("a commit that is not the server's");
    newest.set(frames.readUInt32BE(at), frames.subarray(at + FRAME_HEADER_BYTES, at + FRAME_BYTES));
  }
  return { filePages, payload: payloadOf(newest, filePages, buffer) };
}
