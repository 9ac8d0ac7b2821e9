import type { Certificate } from "./certificate.ts";

/** Most bytes of status line and headers, interim responses included. */
export const HEAD_BYTES_MAX = 64 * 1024;
/**
 * Most headers of a response, ten times what servers send. A target can choose names whose hashes collide, and each of
 * those is compared with all before it.
 */
export const HEADER_LINES_MAX = 1_000;
/** Longest line with a chunk's size, which has 16 digits at most; the rest would be extensions, which no server sends. */
const CHUNK_LINE_BYTES_MAX = 1024;
/** Decimal digits of a length; more are no real length. */
const LENGTH = /^\d{1,15}$/;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,16})[ \t]*(?:;.*)?$/;
/** More bytes are no real chunk. */
const CHUNK_BYTES_MAX = 2 ** 48;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Not allowed within a line: a single CR or LF does not end it, and NUL is no text (RFC 9112, section 2.2; RFC 9110, 5.5). */
const NO_TEXT = /[\r\n\0]/;
const HEAD_END = "\r\n\r\n";
const LINE_END = "\r\n";
const CR = 13;
const LF = 10;

/** Thrown when a peer's bytes are not HTTP/1. */
class MalformedResponse extends Error {}

/** Thrown when the head of a response is too long. */
export class HeadTooLarge extends Error {}

/** Thrown when a peer's bytes are HTTP/2. */
export class Http2Bytes extends Error {}

/** Header values by lower-case name; repeated ones joined by a comma. */
export type ResponseHeaders = Readonly<Record<string, string>>;

/** What is wanted of a response's body. */
export interface BodyOptions {
  /** Most bytes that are read. */
  readonly bodyBytesMax: number;
  /** Whether they are stored; else they are only counted. */
  readonly keepsBody: boolean;
  /** Receives the bytes of a successful response instead, which are not stored then. */
  readonly onBody?: (bytes: Uint8Array) => void;
  /** How many of them are stored, where not all are. */
  readonly storedBytesMax?: number;
}

type Phase = "head" | "sized" | "chunk-size" | "chunk" | "chunk-end" | "trailers" | "until-close" | "done";

/**
 * Reads one HTTP/1 response from pieces of a connection (RFC 9112): at most `bodyBytesMax` bytes of the body, of which
 * only the chunks are decoded.
 */
export class ResponseReader {
  status = 0;
  headers: ResponseHeaders = {};
  /** The address that it came from. */
  address = "";
  /** What was met on the way to it, where that was requested. */
  certificate: Certificate | null = null;
  /** Whether the body was longer than what was read. */
  truncated = false;
  /** Whether the connection may carry another request. */
  reusable = false;
  private readonly expectsBody: boolean;
  private readonly body = new GrowingBytes();
  /** Bytes of the body that have been read. */
  private bodyBytes = 0;
  private phase: Phase = "head";
  /** Bytes that cannot be read before more arrive. */
  private readonly pending = new GrowingBytes();
  /** How many pending bytes have been searched for the end of the line or head. */
  private searched = 0;
  private headBytes = 0;
  /** Bytes to come of a sized body or of a chunk. */
  private expected = 0;

  constructor(
    method: string,
    private readonly wanted: BodyOptions,
  ) {
    this.expectsBody = method !== "HEAD";
  }

  /** The bytes that were kept of the body. */
  get storedBody(): Uint8Array {
    return this.body.bytes;
  }

  /**
   * Takes the next bytes. Returns whether the response is complete, or as much of it as is wanted.
   * @throws MalformedResponse, HeadTooLarge
   */
  push(chunk: Buffer): boolean {
    const waited = this.pending.length > 0;
    if (waited) this.pending.append(chunk);
    let rest = waited ? this.pending.bytes : chunk;
    for (;;) {
      const before = this.phase;
      const length = rest.length;
      rest = this.step(rest);
      if (this.isDone()) {
        // Bytes after the response belong to no request.
        if (rest.length > 0) this.reusable = false;
        return true;
      }
      if (rest.length === 0 || (before === this.phase && rest.length === length)) break;
    }
    if (waited) this.pending.dropFirst(this.pending.length - rest.length);
    else this.pending.append(rest);
    return false;
  }

  /** The peer has closed its side. Returns whether the response is complete by that. */
  end(): boolean {
    if (this.phase === "until-close") this.phase = "done";
    return this.isDone();
  }

  /** A method, since the phase changes in ways that the compiler does not follow. */
  private isDone(): boolean {
    return this.phase === "done";
  }

  private step(bytes: Buffer): Buffer {
    switch (this.phase) {
      case "head":
        return this.readHead(bytes);
      case "sized":
      case "chunk":
        return this.readExpected(bytes);
      case "chunk-size":
        return this.readChunkSize(bytes);
      case "chunk-end":
        return this.readChunkEnd(bytes);
      case "trailers":
        return this.readTrailers(bytes);
      case "until-close":
        this.keep(bytes);
        return bytes.subarray(bytes.length);
      case "done":
        return bytes;
    }
  }

  /** Where `end` begins, or -1. Bytes that were searched before are not searched again. */
  private find(end: string, bytes: Buffer): number {
    const at = bytes.indexOf(end, this.searched);
    this.searched = at < 0 ? Math.max(0, bytes.length - end.length + 1) : 0;
    return at;
  }

  private readHead(bytes: Buffer): Buffer {
    const end = this.find(HEAD_END, bytes);
    if (this.headBytes + (end < 0 ? bytes.length : end) > HEAD_BYTES_MAX) throw new HeadTooLarge();
    if (end < 0) {
      // An invalid status line is rejected immediately, not at the deadline.
      if (!"HTTP/1.".startsWith(bytes.toString("latin1", 0, 7)))
        throw beginsHttp2(bytes) ? new Http2Bytes() : new MalformedResponse();
      return bytes;
    }
    this.headBytes += end + 4;
    const [statusLine = "", ...lines] = bytes.toString("latin1", 0, end).split(LINE_END);
    if (lines.length > HEADER_LINES_MAX) throw new HeadTooLarge();
    const match = STATUS_LINE.exec(statusLine);
    if (match === null || NO_TEXT.test(statusLine)) throw new MalformedResponse();
    const status = Number(match[2]);
    if (status === 101) throw new MalformedResponse();
    // Interim responses announce the real one.
    if (status >= 200) this.beginBody(status, joined(pairsOf(lines)), match[1] === "1");
    return bytes.subarray(end + 4);
  }

  /**
   * Takes a head that came over HTTP/2, after which {@link push} takes the body. Returns whether that completes the response.
   * @throws MalformedResponse, HeadTooLarge
   */
  begin(status: number, pairs: readonly HeaderPair[]): boolean {
    if (pairs.length > HEADER_LINES_MAX) throw new HeadTooLarge();
    const headers = joined(pairs);
    // Only HTTP/1.1 has it (RFC 9113, section 8.2.2).
    if (!(status >= 200) || headers["transfer-encoding"] !== undefined) throw new MalformedResponse();
    this.beginBody(status, headers, false);
    return this.isDone();
  }

  private beginBody(status: number, headers: ResponseHeaders, persistent: boolean): void {
    this.status = status;
    this.headers = headers;
    this.reusable = persistent && !/\bclose\b/i.test(headers["connection"] ?? "");
    const encoding = headers["transfer-encoding"]?.toLowerCase();
    const length = headers["content-length"];
    if (!this.expectsBody || status === 204 || status === 304) {
      this.phase = "done";
    } else if (encoding !== undefined && encoding !== "identity") {
      if (encoding !== "chunked") throw new MalformedResponse();
      // Two lengths may be request smuggling: no second request on this connection.
      if (length !== undefined) this.reusable = false;
      this.phase = "chunk-size";
    } else if (length !== undefined) {
      this.expect(readLength(length), "sized");
    } else {
      this.reusable = false;
      this.phase = "until-close";
    }
  }

  private expect(bytes: number, phase: "sized" | "chunk"): void {
    this.expected = bytes;
    this.phase = phase;
    if (bytes === 0 && phase === "sized") this.phase = "done";
  }

  private readExpected(bytes: Buffer): Buffer {
    const taken = bytes.subarray(0, this.expected);
    this.expected -= taken.length;
    const more = this.keep(taken);
    if (more && this.expected === 0) this.phase = this.phase === "sized" ? "done" : "chunk-end";
    return bytes.subarray(taken.length);
  }

  /** Stores bytes of the body. False: there is no space for more, and the response is done. */
  private keep(bytes: Buffer): boolean {
    const room = this.wanted.bodyBytesMax - this.bodyBytes;
    const { keepsBody, onBody, storedBytesMax = room + this.body.length } = this.wanted;
    const isPassedOn = onBody !== undefined && this.status < 300;
    if (isPassedOn) onBody(bytes.subarray(0, room));
    else if (keepsBody)
      this.body.append(bytes.subarray(0, Math.min(room, storedBytesMax - this.body.length)));
    this.bodyBytes += Math.min(room, bytes.length);
    if (bytes.length <= room) return true;
    this.truncated = true;
    this.reusable = false;
    this.phase = "done";
    return false;
  }

  private readChunkSize(bytes: Buffer): Buffer {
    const end = this.find(LINE_END, bytes);
    if (end < 0) {
      if (bytes.length > CHUNK_LINE_BYTES_MAX) throw new MalformedResponse();
      return bytes;
    }
    const match = CHUNK_SIZE.exec(bytes.toString("latin1", 0, Math.min(end, CHUNK_LINE_BYTES_MAX)));
    if (match === null || end > CHUNK_LINE_BYTES_MAX) throw new MalformedResponse();
    const size = Number.parseInt(match[1] ?? "", 16);
    if (size >= CHUNK_BYTES_MAX) throw new MalformedResponse();
    if (size === 0) this.phase = "trailers";
    else this.expect(size, "chunk");
    return bytes.subarray(end + 2);
  }

  private readChunkEnd(bytes: Buffer): Buffer {
    if (bytes.length < 2) return bytes;
    if (bytes[0] !== CR || bytes[1] !== LF) throw new MalformedResponse();
    this.phase = "chunk-size";
    return bytes.subarray(2);
  }

  /** Trailers are read and forgotten, within the limit of the head. */
  private readTrailers(bytes: Buffer): Buffer {
    const end = this.find(LINE_END, bytes);
    this.headBytes += end < 0 ? 0 : end + 2;
    if (this.headBytes + (end < 0 ? bytes.length : 0) > HEAD_BYTES_MAX) throw new HeadTooLarge();
    if (end < 0) return bytes;
    if (end === 0) this.phase = "done";
    return bytes.subarray(end + 2);
  }
}

/** Bytes before the contents of a frame of HTTP/2. */
const FRAME_HEAD_BYTES = 9;
const SETTINGS_FRAME = 4;

/** Whether bytes are settings without flags and on no stream, with which each connection of HTTP/2 begins (RFC 9113, section 3.4). */
function beginsHttp2(bytes: Buffer): boolean {
  if (bytes.length < FRAME_HEAD_BYTES) return false;
  return bytes[0] === 0 && bytes.readUInt16BE(3) === SETTINGS_FRAME << 8 && bytes.readUInt32BE(5) === 0;
}

/** Name and value of a header, which may come more than once. */
export type HeaderPair = readonly [name: string, value: string];

function pairsOf(lines: readonly string[]): HeaderPair[] {
  return lines.map((line) => {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    if (!NAME.test(name) || NO_TEXT.test(line)) throw new MalformedResponse();
    return [name, withoutBlanks(line, colon + 1)];
  });
}

function joined(pairs: readonly HeaderPair[]): ResponseHeaders {
  const headers: Record<string, string> = Object.create(null);
  for (const [anyCase, value] of pairs) {
    const name = anyCase.toLowerCase();
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    // No list: a proxy has repeated it.
    else if (name !== "location") headers[name] = `${known}, ${value}`;
  }
  return headers;
}

/** The text between blanks from `start` on: found by index, since a target may send any number of blanks. */
function withoutBlanks(line: string, start: number): string {
  let from = start;
  let to = line.length;
  while (from < to && isBlank(line[from])) from += 1;
  while (from < to && isBlank(line[to - 1])) to -= 1;
  return line.slice(from, to);
}

function isBlank(character: string | undefined): boolean {
  return character === " " || character === "\t";
}

/** A length that was given more than once holds only when it is the same each time. */
function readLength(text: string): number {
  const lengths = new Set(text.split(",").map((part) => part.trim()));
  const [length = ""] = lengths;
  if (lengths.size !== 1 || !LENGTH.test(length)) throw new MalformedResponse();
  return Number(length);
}

/** Room at the beginning: what most heads and many bodies need. */
const FIRST_ROOM = 1_024;

/**
 * Bytes that arrive in pieces, in one buffer that doubles: however small the pieces are, each byte is copied a few times
 * at most, and no piece costs an object.
 */
class GrowingBytes {
  private room = Buffer.alloc(0);
  private used = 0;

  get length(): number {
    return this.used;
  }

  /** All of them. They hold until the next change. */
  get bytes(): Buffer {
    return this.room.subarray(0, this.used);
  }

  /** Adds a copy of `more` at the end. */
  append(more: Buffer): void {
    if (more.length === 0) return;
    const length = this.used + more.length;
    if (length > this.room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.room.length, FIRST_ROOM));
      this.room.copy(larger, 0, 0, this.used);
      this.room = larger;
    }
    more.copy(this.room, this.used);
    this.used = length;
  }

  /** Takes the first `count` away. */
  dropFirst(count: number): void {
    if (count > 0) this.room.copy(this.room, 0, count, this.used);
    this.used -= count;
  }
}
