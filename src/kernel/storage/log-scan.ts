import { statSync } from "node:fs";
import { openFile, readWhole } from "./folders.ts";

/** Bytes of the log's own header. */
export const LOG_HEADER_BYTES = 32;
/** Bytes of the header before each page. */
export const FRAME_HEADER_BYTES = 24;

/** "377f0682" or "377f0683": the lowest bit is the byte order of the checksums. */
const LOG_MAGIC = 0x377f0682;
/** Page size of every Ninefold file, assumed if the log has no valid header. */
const PAGE_BYTES_USUAL = 4096;
/** Bytes read per step, so that memory is independent of the log's length. */
const SLICE_BYTES = 1024 * 1024;
/**
 * Commit marks in one unbroken chain after a bad frame that prove damage. The frames of a commit are written only after
 * the previous commit is on the disk: a power cut tears only the last commit, so at most one mark follows a bad frame.
 */
const MARKS_OF_DAMAGE = 2;
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** The content of a log. Frames are counted from 1. */
export interface LogScan {
  /** Frames up to the last complete commit, which SQLite applies. */
  readonly frames: number;
  /** Frames up to the complete commit before that one. */
  readonly framesBefore: number;
  /** Commits among them. */
  readonly commits: number;
  /** Damage after which SQLite would discard commits without an error; null if the log is complete or torn at its end. */
  readonly damage: LogDamage | null;
}

/** A damaged part of the log that commits follow. */
export interface LogDamage {
  /** The first invalid frame; 0 for the header of the log. */
  readonly atFrame: number;
  /** Frames from the last complete commit before it to the last commit mark after it. */
  readonly lostFrames: number;
  /** Commit marks after it that are certain. */
  readonly lostCommits: number;
}

/**
 * Reads a write-ahead log as the recovery of SQLite does, and continues after the first invalid frame. Each frame contains
 * the checksum of everything before it, so each frame is checked against the previous one, and a chain can be followed
 * again after a damaged part. Changes nothing. Null if there is no log, or an empty one.
 *
 * @throws Error if the file cannot be read.
 */
export function scanLog(path: string): LogScan | null {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= LOG_HEADER_BYTES) return null;
  using file = openFile(path, "r");
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  if (readWhole(file.fd, header, 0) < LOG_HEADER_BYTES) return null;
  return new Scanner(header).scan(file.fd);
}

class Scanner {
  private readonly pageBytes: number;
  private readonly frameBytes: number;
  /** Whether the byte order of the checksums differs from that of this machine. */
  private readonly swaps: boolean;
  private readonly sums = new Int32Array(2);
  /** Values of the previous frame: its checksum, its salts, and whether it ends a commit. */
  private checksum: readonly [number, number];
  private salts: readonly [number, number] | null;
  private endsCommit = false;
  /** The number of the last frame that was read. */
  private frame = 0;
  private good = { frames: 0, framesBefore: 0, commits: 0 };
  private badFrame: number | null = null;
  /** The unbroken chain after the bad frame. */
  private chain = { follows: false, marks: 0 };
  private behind = { marks: 0, lastMark: 0, isDamage: false };

  constructor(header: Buffer) {
    const magic = header.readUInt32BE(0);
    this.swaps = (magic & 1) === (IS_LITTLE_ENDIAN ? 1 : 0);
    const words = wordsOf(header, this.swaps);
    this.sum(words, 0, (LOG_HEADER_BYTES - 8) / 4, 0, 0);
    const field = (offset: number) => this.field(header, offset);
    const isWhole = (magic & ~1) === LOG_MAGIC && this.sums[0] === field(24) && this.sums[1] === field(28);
    const pageBytes = field(8);
    this.pageBytes = isWhole && isPageSize(pageBytes) ? pageBytes : PAGE_BYTES_USUAL;
    this.frameBytes = FRAME_HEADER_BYTES + this.pageBytes;
    this.checksum = [field(24), field(28)];
    this.salts = isWhole ? [field(16), field(20)] : null;
    if (isWhole) return;
    this.badFrame = 0;
    // The byte order itself may be damaged: then that of this machine is assumed.
    this.swaps = false;
  }

  scan(file: number): LogScan {
    const slice = Buffer.alloc(Math.max(1, Math.floor(SLICE_BYTES / this.frameBytes)) * this.frameBytes);
    for (let at = LOG_HEADER_BYTES; ; at += slice.length) {
      const size = readWhole(file, slice, at);
      const words = wordsOf(slice, this.swaps);
      for (let offset = 0; offset + this.frameBytes <= size; offset += this.frameBytes)
        this.take(slice, words, offset);
      if (size < slice.length) return this.result();
    }
  }

  private take(slice: Buffer, words: Int32Array, offset: number): void {
    this.frame += 1;
    const salts = [this.field(slice, offset + 8), this.field(slice, offset + 12)] as const;
    const checksum = [this.field(slice, offset + 16), this.field(slice, offset + 20)] as const;
    const isCurrent = this.salts === null || (salts[0] === this.salts[0] && salts[1] === this.salts[1]);
    // Without a header, the first frame determines the current salts.
    this.salts ??= salts;
    const follows = isCurrent && this.field(slice, offset) !== 0 && this.fits(words, offset / 4, checksum);
    const endsCommit = isCurrent && this.field(slice, offset + 4) !== 0;
    if (!follows) this.badFrame ??= this.frame;
    if (this.badFrame === null) this.keep(endsCommit);
    else this.follow({ follows, endsCommit });
    this.checksum = checksum;
    this.endsCommit = endsCommit;
  }

  private keep(endsCommit: boolean): void {
    if (!endsCommit) return;
    const { frames, commits } = this.good;
    this.good = { frames: this.frame, framesBefore: frames, commits: commits + 1 };
  }

  /** Checks a frame after the bad one. A valid frame also proves the previous one, whose checksum it continues. */
  private follow({ follows, endsCommit }: { follows: boolean; endsCommit: boolean }): void {
    if (!follows) {
      this.chain = { follows: false, marks: 0 };
      return;
    }
    const begins = !this.chain.follows && this.endsCommit && this.frame > 1;
    const marks = (begins ? 1 : 0) + (endsCommit ? 1 : 0);
    this.chain = { follows: true, marks: this.chain.marks + marks };
    this.behind.marks += marks;
    if (endsCommit) this.behind.lastMark = this.frame;
    if (this.chain.marks >= MARKS_OF_DAMAGE) this.behind.isDamage = true;
  }

  private fits(words: Int32Array, at: number, checksum: readonly [number, number]): boolean {
    this.sum(words, at, 2, this.checksum[0], this.checksum[1]);
    const page = at + FRAME_HEADER_BYTES / 4;
    this.sum(words, page, this.pageBytes / 4, this.sums[0] ?? 0, this.sums[1] ?? 0);
    return this.sums[0] === checksum[0] && this.sums[1] === checksum[1];
  }

  /** Continues the checksum of SQLite with this many words. The result is in `sums`. */
  private sum(words: Int32Array, from: number, count: number, first: number, second: number): void {
    let a = first;
    let b = second;
    const end = from + count;
    for (let index = from; index < end; index += 2) {
      a = (((a + (words[index] as number)) | 0) + b) | 0;
      b = (((b + (words[index + 1] as number)) | 0) + a) | 0;
    }
    this.sums[0] = a;
    this.sums[1] = b;
  }

  /** A number of a header: big-endian in the file, and possibly swapped with the rest. */
  private field(bytes: Buffer, offset: number): number {
    return this.swaps ? bytes.readInt32LE(offset) : bytes.readInt32BE(offset);
  }

  private result(): LogScan {
    const { marks, lastMark, isDamage } = this.behind;
    const damage = {
      atFrame: this.badFrame ?? 0,
      lostFrames: lastMark - this.good.frames,
      lostCommits: marks,
    };
    return { ...this.good, damage: isDamage ? damage : null };
  }
}

/** The words of a buffer in the byte order of this machine; swaps the bytes in place if it differs. */
function wordsOf(bytes: Buffer, swaps: boolean): Int32Array {
  if (swaps) bytes.swap32();
  return new Int32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 4));
}

function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}
