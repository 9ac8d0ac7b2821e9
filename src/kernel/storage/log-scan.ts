import { readSync, statSync } from "node:fs";
import { openFile } from "./folders.ts";

/** Bytes of the log's own header. */
export const LOG_HEADER_BYTES = 32;
/** Bytes of the header before each page. */
export const FRAME_HEADER_BYTES = 24;

/** "377f0682" or "377f0683": the lowest bit says in which order of bytes checksums were calculated. */
const LOG_MAGIC = 0x377f0682;
/** Page size of every Ninefold file: what is assumed where the log's header does not say it. */
const PAGE_BYTES_USUAL = 4096;
/** Bytes read per step, so that memory is independent of the log's length. */
const SLICE_BYTES = 1024 * 1024;
/**
 * Commit marks in one unbroken chain behind a bad frame that prove damage. A commit's frames are written only when the
 * one before it is on the disk: so what a power cut has torn is the last commit, and one mark at the most stands behind.
 */
const MARKS_OF_DAMAGE = 2;
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** What a log holds. Frames are counted from 1. */
export interface LogScan {
  /** Frames up to the last whole commit: what SQLite takes. */
  readonly frames: number;
  /** Commits among them. */
  readonly commits: number;
  /** What stands behind a damaged place, and SQLite would drop without a word; null where the log is whole or torn at its end. */
  readonly damage: LogDamage | null;
}

/** A place that the log cannot be followed beyond, although commits stand behind it. */
export interface LogDamage {
  /** The first frame that does not fit; 0 is the log's header. */
  readonly atFrame: number;
  /** Frames from the last whole commit before it to the last commit mark behind it. */
  readonly lostFrames: number;
  /** Commit marks behind it that are certain. */
  readonly lostCommits: number;
}

/**
 * Reads a write-ahead log as SQLite's recovery does, and continues behind the first frame that does not fit. Each frame
 * carries the checksum of everything before it: so a frame is tested against the one that the frame before it carries,
 * and a chain can be followed again behind a damaged place. Changes nothing. Null where there is no log, or an empty one.
 *
 * @throws Error when the file cannot be read.
 */
export function scanLog(path: string): LogScan | null {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= LOG_HEADER_BYTES) return null;
  using file = openFile(path, "r");
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  readSync(file.fd, header, 0, LOG_HEADER_BYTES, 0);
  return new Scanner(header).scan(file.fd);
}

class Scanner {
  private readonly pageBytes: number;
  private readonly frameBytes: number;
  /** Whether checksums were calculated in the other order of bytes than this machine's. */
  private readonly swaps: boolean;
  private readonly sums = new Int32Array(2);
  /** What the frame before carries: its checksum, its salts, and whether it ends a commit. */
  private checksum: readonly [number, number];
  private salts: readonly [number, number] | null;
  private endsCommit = false;
  /** The number of the frame that was looked at last. */
  private frame = 0;
  private good = { frames: 0, commits: 0 };
  private badFrame: number | null = null;
  /** The unbroken chain that is being followed behind the bad frame. */
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
    // The order of bytes may be what is damaged: then it is the one in which this machine writes.
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
    // Without a header, the first frame says which salts are the current ones.
    this.salts ??= salts;
    const follows = isCurrent && this.field(slice, offset) !== 0 && this.fits(words, offset / 4, checksum);
    const endsCommit = isCurrent && this.field(slice, offset + 4) !== 0;
    if (!follows) this.badFrame ??= this.frame;
    if (this.badFrame === null) this.keep(endsCommit);
    else this.follow(follows, endsCommit);
    this.checksum = checksum;
    this.endsCommit = endsCommit;
  }

  private keep(endsCommit: boolean): void {
    if (!endsCommit) return;
    this.good = { frames: this.frame, commits: this.good.commits + 1 };
  }

  /** Behind the bad frame. That a frame fits proves the one before it too, whose checksum it was calculated from. */
  private follow(follows: boolean, endsCommit: boolean): void {
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

  /** SQLite's checksum of so many words, which continues from an earlier one. Leaves it in `sums`. */
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

  /** A number of a header: in the file they are big-endian, and may have been turned with the rest. */
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

/** The words of a buffer in this machine's order; turns the bytes of each round in their place where it is the other one. */
function wordsOf(bytes: Buffer, swaps: boolean): Int32Array {
  if (swaps) bytes.swap32();
  return new Int32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 4));
}

/** Reads until the buffer is full or the file ends. Returns the bytes read. */
function readWhole(file: number, bytes: Buffer, at: number): number {
  let size = 0;
  while (size < bytes.length) {
    const read = readSync(file, bytes, size, bytes.length - size, at + size);
    if (read === 0) break;
    size += read;
  }
  return size;
}

function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}
