import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { openFile, writeAll } from "../folders.ts";
import { decodeEntry, type Entry, InvalidEntry, plainHeader, readHeader } from "./entry.ts";
import type { Position } from "./position.ts";

/** Bytes of the first line of a segment. */
const LINE_BYTES = 256;
/** A segment is closed at this size, so that its entries can be merged in memory. */
const SEGMENT_BYTES = 32 * 1024 * 1024;

/** A closed segment. */
export interface Segment {
  readonly path: string;
  /** Number of its first entry. */
  readonly first: number;
}

/** The first line of a segment. */
interface Line {
  /** Identifies the archive that the entries are for. */
  readonly archive: string;
  readonly epoch: number;
  readonly first: number;
  /** Whether the archive was found to be usable; absent if that is not known. */
  readonly isUsable?: true;
}

/**
 * The entries that are not archived yet, in files of the data folder: `ninefold.tail`, and closed segments with the number of
 * their first entry after that name. They are appended without a sync, so they outlast the process but not the machine.
 */
export class Tail {
  /** Closed segments, oldest first. */
  readonly segments: Segment[] = [];
  private file: number | null = null;
  private line: Line = { archive: "", epoch: 0, first: 1 };
  private nextSeq = 1;
  private currentBytes = 0;
  private closedBytes = 0;

  constructor(private readonly path: string) {}

  /** Bytes of all entries. */
  get bytes(): number {
    return this.currentBytes + this.closedBytes;
  }

  /** Number of the next entry: everything before it is in the archive or here. */
  get next(): Position {
    return { epoch: this.line.epoch, seq: this.nextSeq };
  }

  /** Number of the first entry that is not archived, or of the next one. */
  get first(): number {
    return this.segments[0]?.first ?? this.line.first;
  }

  /** Whether an earlier process or this one has found that the archive can be used. */
  get isUsable(): boolean {
    return this.line.isUsable === true;
  }

  /** Notes that the archive can be used. @throws Error if the disk does not take it. */
  noteUsable(): void {
    if (this.file === null || this.isUsable) return;
    this.line = { ...this.line, isUsable: true };
    writeAll(this.file, encodedLine(this.line), 0);
  }

  /** Whether any entry is not archived yet. */
  get isEmpty(): boolean {
    return this.segments.length === 0 && this.nextSeq === this.line.first;
  }

  /**
   * Takes up what an earlier process has left for this archive. False: nothing, or nothing that can be continued. An entry
   * at the end that is incomplete is removed.
   */
  open(archive: string): boolean {
    const closed = this.found();
    let expected: Position | null = null;
    let last: Line | null = null;
    for (const path of [...closed.map((segment) => segment.path), this.path]) {
      if (path === this.path && expected !== null && !existsSync(path)) {
        // Interrupted while a segment was closed.
        this.create({
          ...last,
          archive,
          epoch: expected.epoch,
          first: expected.seq,
        });
        return true;
      }
      const read = readSegment(path);
      if (read === null || read.line.archive !== archive) return false;
      if (expected !== null && (read.line.epoch !== expected.epoch || read.line.first !== expected.seq))
        return false;
      expected = { epoch: read.line.epoch, seq: read.next };
      last = read.line;
      if (path !== this.path) {
        // Its successor exists, so it was closed complete.
        if (!read.isWhole) return false;
        this.segments.push({ path, first: read.line.first });
        this.closedBytes += read.bytes;
        continue;
      }
      this.line = read.line;
      this.nextSeq = read.next;
      this.currentBytes = read.bytes;
      this.file = openSync(path, "r+");
      ftruncateSync(this.file, LINE_BYTES + read.bytes);
    }
    return true;
  }

  /** Drops everything, and begins with an entry. @throws Error if the disk does not take it. */
  begin(archive: string, { epoch, seq }: Position): void {
    this.close();
    const known = this.line.archive === archive ? this.line : null;
    // First the new beginning: what an interrupted removal leaves is of another epoch, and is not continued.
    this.create({ ...known, archive, epoch, first: seq });
    for (const { path } of this.found()) rmSync(path, { force: true });
    this.segments.length = 0;
    this.closedBytes = 0;
  }

  /** Appends the next entry. @throws Error if the disk does not take it; then {@link begin} anew. */
  append(entry: Entry): void {
    const file = this.file;
    if (file === null || entry.seq !== this.nextSeq || entry.epoch !== this.line.epoch)
      throw new Error("the entry does not continue the tail");
    const at = LINE_BYTES + this.currentBytes;
    const header = plainHeader(entry);
    writeAll(file, header, at);
    writeAll(file, entry.payload, at + header.length);
    this.currentBytes += header.length + entry.payload.length;
    this.nextSeq += 1;
    if (this.currentBytes >= SEGMENT_BYTES) this.rotate();
  }

  /** Closes the segment in progress, if it has entries. @throws Error if the disk does not take the next one. */
  rotate(): void {
    const { first } = this.line;
    if (this.nextSeq === first) return;
    const path = `${this.path}.${first}`;
    this.close();
    renameSync(this.path, path);
    this.segments.push({ path, first });
    this.closedBytes += this.currentBytes;
    this.create({ ...this.line, first: this.nextSeq });
  }

  /** Removes the oldest segment, which is archived. */
  drop(segment: Segment): void {
    if (this.segments[0] !== segment) throw new Error("segments are archived in order");
    this.segments.shift();
    using file = openFile(segment.path, "r");
    this.closedBytes -= fstatSync(file.fd).size - LINE_BYTES;
    rmSync(segment.path, { force: true });
  }

  /** Removes the closed segments that have nothing after this entry. */
  dropThrough(seq: number): void {
    for (const segment of [...this.segments]) {
      if (this.lastOf(segment) > seq) return;
      this.drop(segment);
    }
  }

  /** Number of a segment's last entry. */
  lastOf(segment: Segment): number {
    const next = this.segments[this.segments.indexOf(segment) + 1];
    return (next?.first ?? this.line.first) - 1;
  }

  /**
   * Writes a closed segment with entries from before the first one, each in its encoded parts. It is part of the tail once
   * {@link prepend} was called with it and those between.
   */
  writeSegment(first: number, parts: readonly Uint8Array[]): Segment {
    const path = `${this.path}.${first}`;
    using file = openFile(path, "w", 0o600);
    writeAll(file.fd, Buffer.concat([encodedLine({ ...this.line, first }), ...parts]), 0);
    return { path, first };
  }

  /** Removes segments that were written and are not part of the tail. */
  discard(segments: readonly Segment[]): void {
    for (const { path } of segments) rmSync(path, { force: true });
  }

  /** Puts segments before the others. The last one ends before {@link first}. */
  prepend(segments: readonly Segment[]): void {
    for (const { path } of segments) this.closedBytes += statSync(path).size - LINE_BYTES;
    this.segments.unshift(...segments);
  }

  close(): void {
    if (this.file !== null) closeSync(this.file);
    this.file = null;
  }

  /** Creates the file complete or not at all. */
  private create(line: Line): void {
    const part = `${this.path}.new`;
    const file = openSync(part, "w+", 0o600);
    try {
      writeAll(file, encodedLine(line), 0);
      renameSync(part, this.path);
    } catch (error) {
      closeSync(file);
      throw error;
    }
    this.file = file;
    this.line = line;
    this.nextSeq = line.first;
    this.currentBytes = 0;
  }

  private found(): Segment[] {
    const name = `${basename(this.path)}.`;
    const folder = dirname(this.path);
    return readdirSync(folder)
      .filter((file) => file.startsWith(name) && /^\d{1,15}$/.test(file.slice(name.length)))
      .map((file) => ({
        path: join(folder, file),
        first: Number(file.slice(name.length)),
      }))
      .toSorted((a, b) => a.first - b.first);
  }
}

function encodedLine(line: Line): Uint8Array {
  return Buffer.from(`${JSON.stringify(line).padEnd(LINE_BYTES - 1)}\n`);
}

/**
 * The entries of a segment, in order. `key`: for those that were encoded by another process.
 *
 * @throws InvalidEntry if one is damaged.
 */
export function* entriesIn(path: string, key: Uint8Array): Generator<Entry> {
  yield* decoded(readFileSync(path), key);
}

/** Plain entries need no key. */
function* decoded(bytes: Uint8Array, key: Uint8Array = new Uint8Array()): Generator<Entry> {
  let parts: Uint8Array[] = [];
  for (let at = LINE_BYTES; at < bytes.length; ) {
    const { bytes: length, hasMore } = readHeader(bytes.subarray(at));
    parts.push(bytes.subarray(at, at + length));
    at += length;
    if (hasMore) continue;
    yield decodeEntry(parts, key);
    parts = [];
  }
}

interface ReadSegment {
  readonly line: Line;
  readonly next: number;
  /** Bytes of its complete entries. */
  readonly bytes: number;
  readonly isWhole: boolean;
}

/** Null: there is no segment, or it is not one. */
function readSegment(path: string): ReadSegment | null {
  let bytes: Uint8Array;
  let line: Line;
  try {
    bytes = readFileSync(path);
    line = JSON.parse(Buffer.from(bytes.subarray(0, LINE_BYTES)).toString("utf8")) as Line;
  } catch {
    return null;
  }
  let next = line.first;
  let size = 0;
  try {
    for (const entry of decoded(bytes)) {
      if (entry.seq !== next || entry.epoch !== line.epoch) break;
      next += 1;
      size += plainHeader(entry).length + entry.payload.length;
    }
  } catch (error) {
    if (!(error instanceof InvalidEntry)) throw error;
  }
  return {
    line,
    next,
    bytes: size,
    isWhole: LINE_BYTES + size === bytes.length,
  };
}
