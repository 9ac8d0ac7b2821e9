import { createCipheriv, createDecipheriv } from "node:crypto";
import { ftruncateSync } from "node:fs";
import { hmacSha256 } from "../../hmac.ts";
import { writeAll } from "../folders.ts";
import type { StoredPosition } from "./position.ts";

/** SQLite's default page size, which every Ninefold file has. */
export const PAGE_BYTES = 4096;
/** Bytes of a page in a payload: its number, big-endian, and its content. */
export const PAGE_RECORD_BYTES = 4 + PAGE_BYTES;
/** Bytes of the header of a part without a log id. */
const HEADER_BYTES = 48;
/** Bytes of a log id. */
const LOG_ID_BYTES = 16;
/** Bytes of the longest header: that of an entry of a commit log. Every part has as many. */
export const HEADER_BYTES_MAX = HEADER_BYTES + LOG_ID_BYTES;
/** Longest part, in bytes: etcd accepts requests of 1.5 MiB, in base64 these. */
export const PART_BYTES_MAX = 1024 * 1024;
/** Pages of a part: with pages that cannot be compressed it is still shorter than {@link PART_BYTES_MAX}. */
export const PAGES_PER_PART = 250;

/** Purpose of the key of entries, for {@link Vault.derive}. */
export const ENTRY_KEY_PURPOSE = "ninefold entry v1";

/** "9FLE". */
const MAGIC = 0x39464c45;
/** Version of a part without a log id: of an archive, or of a commit log before logs had an identity. */
const VERSION_WITHOUT_LOG = 1;
const VERSION = 2;
const TAG_BYTES = 16;
/** Parts are numbered by 16 bits. */
const PARTS_MAX = 65_536;
const ZSTD_LEVEL = 1;

/** Flags of a part. */
const SEAL = 1;
const MORE = 2;
/** The body is the payload itself, as in files that stay in the data folder. */
const PLAIN = 8;

/** The pages that one batch changed, or several batches in sequence. The position is that of the last one. */
export interface Entry extends StoredPosition {
  /** Whether it begins the epoch of a new leader, directly after the last entry of an earlier epoch. */
  readonly isSeal: boolean;
  /** Pages of the whole file after the batch. */
  readonly filePages: number;
  /** Number (big-endian, 4 bytes) and content of each page, ascending, the last version of each. */
  readonly payload: Uint8Array;
}

/** The header of a part. */
export interface PartHeader extends StoredPosition {
  readonly isSeal: boolean;
  readonly hasMore: boolean;
  readonly part: number;
  /** Pages in this part. */
  readonly pages: number;
  readonly filePages: number;
  /** Bytes of the part with its header. */
  readonly bytes: number;
}

/** Bytes that are not an entry, or not one of this key. */
export class InvalidEntry extends Error {}

/**
 * The encoded parts of an entry: compressed, and encrypted under a key from {@link ENTRY_KEY_PURPOSE}. The same entry
 * always has the same bytes. `context` names the place of the bytes if that matters: elsewhere they cannot be opened.
 *
 * @throws Error if the entry has too many pages for 65,536 parts.
 */
export function* encodeEntry(
  entry: Entry,
  key: Uint8Array,
  context = "",
  pagesPerPart = PAGES_PER_PART,
): Generator<Uint8Array> {
  const partBytes = pagesPerPart * PAGE_RECORD_BYTES;
  const parts = Math.max(1, Math.ceil(entry.payload.length / partBytes));
  if (parts > PARTS_MAX) throw new Error(`an entry has at most ${PARTS_MAX} parts`);
  for (let part = 0; part < parts; part += 1) {
    const payload = entry.payload.subarray(part * partBytes, (part + 1) * partBytes);
    yield sealPart(entry, { part, hasMore: part + 1 < parts, payload }, key, context);
  }
}

/** A part of an entry. */
interface Part {
  readonly part: number;
  readonly hasMore: boolean;
  /** Its pages, as in {@link Entry}. */
  readonly payload: Uint8Array;
}

/** Encodes one part: for entries that are too large for the memory, such as a whole file. */
export function sealPart(
  entry: Omit<Entry, "payload">,
  part: Part,
  key: Uint8Array,
  context = "",
): Uint8Array {
  const packed = Bun.zstdCompressSync(part.payload, { level: ZSTD_LEVEL });
  const header = headerOf(entry, part, 0, packed.length + TAG_BYTES);
  const cipher = createCipheriv("aes-256-gcm", partKey(key, header), nonceOf(entry, part.part));
  cipher.setAAD(Buffer.concat([header, Buffer.from(context)]));
  return Buffer.concat([header, cipher.update(packed), cipher.final(), cipher.getAuthTag()]);
}

/** The header of an entry in one plain part, which the payload follows: for files that stay in the data folder. */
export function plainHeader(entry: Entry): Uint8Array {
  const part = { part: 0, hasMore: false, payload: entry.payload };
  return headerOf(entry, part, PLAIN, entry.payload.length);
}

/** Reads the header of a part. @throws InvalidEntry */
export function readHeader(bytes: Uint8Array): PartHeader {
  const header = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (header.length < HEADER_BYTES || header.readUInt32BE(0) !== MAGIC)
    throw new InvalidEntry("not an entry of Ninefold");
  const version = header.readUInt8(4);
  if (version !== VERSION && version !== VERSION_WITHOUT_LOG)
    throw new InvalidEntry(`an entry of version ${version}, which is newer than this program`);
  const headerBytes = headerBytesIn(header);
  if (header.length < headerBytes) throw new InvalidEntry("the entry is incomplete");
  const flags = header.readUInt8(5);
  return {
    isSeal: (flags & SEAL) !== 0,
    hasMore: (flags & MORE) !== 0,
    part: header.readUInt16BE(6),
    epoch: header.readUInt32BE(8),
    seq: Number(header.readBigUInt64BE(12)),
    at: Number(header.readBigUInt64BE(20)),
    pages: header.readUInt32BE(28),
    filePages: header.readUInt32BE(32),
    log: headerBytes > HEADER_BYTES ? header.toString("hex", HEADER_BYTES, headerBytes) : null,
    bytes: headerBytes + header.readUInt32BE(44),
  };
}

/** Bytes of the header of a part with its log id. */
function headerBytesIn(part: Uint8Array): number {
  return part[4] === VERSION_WITHOUT_LOG ? HEADER_BYTES : HEADER_BYTES + LOG_ID_BYTES;
}

/** Splits parts that follow each other, as in an object of an archive. @throws InvalidEntry if the last one is incomplete. */
export function splitParts(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { bytes: length } = readHeader(bytes.subarray(at));
    if (at + length > bytes.length) throw new InvalidEntry("the entry is incomplete");
    parts.push(bytes.subarray(at, at + length));
    at += length;
  }
  return parts;
}

/** Opens one part. @throws InvalidEntry if a bit, the key or the context differs. */
export function openPart(bytes: Uint8Array, key: Uint8Array, context = ""): PartHeader & Part {
  const header = readHeader(bytes);
  if (header.bytes !== bytes.length) throw new InvalidEntry("the entry is incomplete");
  const headerBytes = headerBytesIn(bytes);
  const raw = bytes.subarray(0, headerBytes);
  const body = bytes.subarray(headerBytes);
  const isPlain = ((raw[5] ?? 0) & PLAIN) !== 0;
  const payload = isPlain ? body : opened(raw, body, header, key, context);
  if (payload.length !== header.pages * PAGE_RECORD_BYTES || hashOf(payload) !== hashIn(raw))
    throw new InvalidEntry("the entry is damaged");
  return { ...header, payload };
}

/** Joins all parts of one entry. @throws InvalidEntry if one is missing, damaged, or of another entry. */
export function decodeEntry(parts: readonly Uint8Array[], key: Uint8Array, context = ""): Entry {
  const all = parts.map((part) => openPart(part, key, context));
  const last = all.at(-1);
  if (last === undefined || last.hasMore) throw new InvalidEntry("the entry is incomplete");
  for (const [index, { part, epoch, seq, log }] of all.entries()) {
    if (part !== index || epoch !== last.epoch || seq !== last.seq || log !== last.log)
      throw new InvalidEntry("the parts are not those of one entry");
  }
  const { epoch, seq, at, log, isSeal, filePages } = last;
  const payload = all.length === 1 ? last.payload : Buffer.concat(all.map((part) => part.payload));
  return { epoch, seq, at, log, isSeal, filePages, payload };
}

/** Calls `each` for every page of a payload, ascending. */
export function forEachPage(payload: Uint8Array, each: (page: number, content: Uint8Array) => void): void {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  for (let at = 0; at < payload.length; at += PAGE_RECORD_BYTES)
    each(view.getUint32(at), payload.subarray(at + 4, at + PAGE_RECORD_BYTES));
}

/**
 * Builds a payload from the content of pages; those beyond the end of the file are dropped. It is written into `buffer` if it
 * fits there: then it is valid until the buffer is used again.
 */
export function payloadOf(
  pages: ReadonlyMap<number, Uint8Array>,
  filePages: number,
  buffer: Buffer | null = null,
): Uint8Array {
  const numbers = Uint32Array.from(pages.keys())
    .filter((page) => page <= filePages)
    .sort();
  const size = numbers.length * PAGE_RECORD_BYTES;
  const payload =
    buffer !== null && size <= buffer.length ? buffer.subarray(0, size) : Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const page of numbers) {
    payload.writeUInt32BE(page, at);
    payload.set(pages.get(page) ?? [], at + 4);
    at += PAGE_RECORD_BYTES;
  }
  return payload;
}

/** Merges entries that follow each other into one with the position of the last: the last version of each page. */
export class MergedEntry {
  private readonly pages = new Map<number, Uint8Array>();
  private last: Omit<Entry, "payload"> | null = null;
  private isSeal = false;

  /** Adds the next entry, whose payload must not be changed afterwards. */
  add(entry: Entry): void {
    if (this.last === null) this.isSeal = entry.isSeal;
    // The beginning of an epoch in a commit log has no time.
    this.last = entry.at === 0 && this.last !== null ? { ...entry, at: this.last.at } : entry;
    forEachPage(entry.payload, (page, content) => this.pages.set(page, content));
  }

  /** The merged entry; null without any. */
  entry(): Entry | null {
    if (this.last === null) return null;
    const { epoch, seq, at, log, filePages } = this.last;
    return { epoch, seq, at, log, filePages, isSeal: this.isSeal, payload: payloadOf(this.pages, filePages) };
  }
}

/** Applies an entry to a database file without a log. Applying it again changes nothing. Not synced. */
export function applyEntry(file: number, { payload, filePages }: Pick<Entry, "payload" | "filePages">): void {
  forEachPage(payload, (page, content) => writeAll(file, content, (page - 1) * PAGE_BYTES));
  ftruncateSync(file, filePages * PAGE_BYTES);
}

function headerOf(
  { epoch, seq, at, log, isSeal, filePages }: Omit<Entry, "payload">,
  { part, hasMore, payload }: Part,
  flags: number,
  bodyBytes: number,
): Buffer {
  const header = Buffer.alloc(HEADER_BYTES + (log === null ? 0 : LOG_ID_BYTES));
  header.writeUInt32BE(MAGIC, 0);
  header.writeUInt8(log === null ? VERSION_WITHOUT_LOG : VERSION, 4);
  header.writeUInt8(flags | (isSeal ? SEAL : 0) | (hasMore ? MORE : 0), 5);
  header.writeUInt16BE(part, 6);
  header.writeUInt32BE(epoch, 8);
  header.writeBigUInt64BE(BigInt(seq), 12);
  header.writeBigUInt64BE(BigInt(at), 20);
  header.writeUInt32BE(payload.length / PAGE_RECORD_BYTES, 28);
  header.writeUInt32BE(filePages, 32);
  header.writeBigUInt64BE(hashOf(payload), 36);
  header.writeUInt32BE(bodyBytes, 44);
  if (log !== null) header.write(log, HEADER_BYTES, "hex");
  return header;
}

function hashIn(header: Uint8Array): bigint {
  return new DataView(header.buffer, header.byteOffset).getBigUint64(36);
}

function hashOf(payload: Uint8Array): bigint {
  return Bun.hash.xxHash3(payload);
}

function opened(
  raw: Uint8Array,
  body: Uint8Array,
  header: PartHeader,
  key: Uint8Array,
  context: string,
): Uint8Array {
  try {
    const decipher = createDecipheriv("aes-256-gcm", partKey(key, raw), nonceOf(header, header.part));
    decipher.setAAD(Buffer.concat([raw, Buffer.from(context)]));
    decipher.setAuthTag(body.subarray(body.length - TAG_BYTES));
    const packed = Buffer.concat([decipher.update(body.subarray(0, -TAG_BYTES)), decipher.final()]);
    return Bun.zstdDecompressSync(packed);
  } catch {
    throw new InvalidEntry("the entry is damaged, or the master key is a different one");
  }
}

/**
 * The key of one part. It depends on the header, and so on the hash of the payload: should the same position ever be
 * encoded with other pages (after a power cut, or by a copy of the data folder), key and nonce are not used twice.
 */
function partKey(key: Uint8Array, header: Uint8Array): Uint8Array {
  return hmacSha256(key).update(header).digest();
}

/** Epoch (4 bytes), sequence number (6 bytes), part (2 bytes). */
function nonceOf({ epoch, seq }: { readonly epoch: number; readonly seq: number }, part: number): Uint8Array {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(epoch, 0);
  nonce.writeUIntBE(seq, 4, 6);
  nonce.writeUInt16BE(part, 10);
  return nonce;
}
