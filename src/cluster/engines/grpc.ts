import type { Connection } from "../../kernel/outbound/connection.ts";
import { realTimeout } from "../../kernel/time/clock.ts";

/** What a client sends first on a connection, also without TLS ("prior knowledge"). */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const FRAME_HEADER_BYTES = 9;
/** Longest frame that every server accepts. */
const FRAME_BYTES_MAX = 16_384;
/** Bytes that may be sent or received before the other end has confirmed some. */
const WINDOW_BYTES = 65_535;
/** Received bytes after which the server may send as many again. */
const CONFIRMED_BYTES = 32_768;
/** Streams have odd numbers of 31 bits; a connection ends long before. */
const STREAM_MAX = 2 ** 30;
/** Bytes before a message: whether it is compressed, and its length. */
const MESSAGE_PREFIX_BYTES = 5;

/** Types of frames (RFC 9113, section 6). */
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
/** Flags of frames. */
const ACK = 1;
const END_STREAM = 1;
const END_HEADERS = 4;
const PADDED = 8;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;

/** A call had no response: it may have had its effect. */
export class GrpcFailure extends Error {}

interface PendingCall {
  readonly stream: number;
  readonly resolve: (message: Uint8Array) => void;
  readonly reject: (error: GrpcFailure) => void;
  body: Uint8Array;
}

/**
 * Unary calls of gRPC over an HTTP/2 connection, one after another. It does just this: a request whose headers are always
 * the same, and a response of one message. Why a server rejected a call stands in compressed headers, which are not read.
 */
export class GrpcConnection {
  private pending: PendingCall | null = null;
  private waiting: Uint8Array = new Uint8Array();
  private stream = 1;
  /** What may still be sent: on the connection, and on each new stream. */
  private window = WINDOW_BYTES;
  private streamWindow = WINDOW_BYTES;
  private received = 0;
  private isClosed = false;
  private readonly head: Uint8Array;

  /** `path`, `headers`: of every call. */
  constructor(
    private readonly connection: Connection,
    { url, path, headers }: GrpcTarget,
  ) {
    const { protocol, host } = new URL(url);
    const fields = {
      ":method": "POST",
      ":scheme": protocol.slice(0, -1),
      ":path": path,
      ":authority": host,
    };
    this.head = headerBlock({ ...fields, te: "trailers", "content-type": "application/grpc", ...headers });
    connection.listener = {
      onBytes: (bytes) => this.take(bytes),
      onEnd: () => this.fail("the connection was closed"),
    };
    connection.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
  }

  /** Whether another call can be made. */
  get isOpen(): boolean {
    return !this.isClosed && this.connection.isOpen && this.stream < STREAM_MAX;
  }

  /** Whether a message can be sent without a pause. */
  fits(message: Uint8Array): boolean {
    return message.length + MESSAGE_PREFIX_BYTES <= Math.min(this.window, this.streamWindow);
  }

  /** Resolves to the message of the response. Call it when the last call has ended. @throws GrpcFailure */
  call(message: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    if (this.pending !== null || !this.isOpen || !this.fits(message))
      return Promise.reject(new GrpcFailure("the connection cannot carry the call now"));
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const stream = this.stream;
    this.stream += 2;
    this.window -= message.length + MESSAGE_PREFIX_BYTES;
    this.pending = { stream, resolve, reject, body: new Uint8Array() };
    this.connection.write(Buffer.concat(requestFrames(stream, this.head, message)));
    const cancel = realTimeout(timeoutMs, () => this.fail(`no response within ${timeoutMs} ms`));
    return promise.finally(cancel);
  }

  close(): void {
    this.fail("the connection was closed");
  }

  /** Ends the connection: a response that comes later belongs to nobody. */
  private fail(reason: string): void {
    this.isClosed = true;
    this.connection.destroy();
    this.settle()?.reject(new GrpcFailure(reason));
  }

  private settle(): PendingCall | null {
    const { pending } = this;
    this.pending = null;
    return pending;
  }

  private take(bytes: Uint8Array): void {
    let rest = this.waiting.length === 0 ? bytes : Buffer.concat([this.waiting, bytes]);
    while (rest.length >= FRAME_HEADER_BYTES && !this.isClosed) {
      const header = Buffer.from(rest.buffer, rest.byteOffset, FRAME_HEADER_BYTES);
      const end = FRAME_HEADER_BYTES + header.readUIntBE(0, 3);
      // Also what is not HTTP/2 at all.
      if (end > FRAME_HEADER_BYTES + FRAME_BYTES_MAX) this.fail("the response is not HTTP/2");
      if (rest.length < end) break;
      const payload = Buffer.from(
        rest.buffer,
        rest.byteOffset + FRAME_HEADER_BYTES,
        end - FRAME_HEADER_BYTES,
      );
      this.takeFrame(header.readUInt8(3), header.readUInt8(4), header.readUInt32BE(5), payload);
      rest = rest.subarray(end);
    }
    // A copy: the buffer is not ours after this call.
    this.waiting = Buffer.from(rest);
  }

  private takeFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    const isPending = stream === this.pending?.stream;
    switch (type) {
      case DATA:
        this.takeData(flags, isPending, payload);
        break;
      case HEADERS:
        if (isPending && (flags & END_STREAM) !== 0) this.reject("the server has rejected the call");
        break;
      case RST_STREAM:
        if (isPending) this.reject("the server has ended the call");
        break;
      case SETTINGS:
        if ((flags & ACK) === 0) this.takeSettings(payload);
        break;
      case PING:
        if ((flags & ACK) === 0) this.connection.write(frame(PING, ACK, 0, payload));
        break;
      case GOAWAY:
        this.fail("the server ends the connection");
        break;
      case WINDOW_UPDATE:
        // What a stream may send is not used up by its only message.
        if (stream === 0) this.window += payload.readUInt32BE(0);
        break;
      default:
    }
  }

  private reject(reason: string): void {
    this.settle()?.reject(new GrpcFailure(reason));
  }

  private takeData(flags: number, isPending: boolean, payload: Buffer): void {
    this.received += payload.length;
    if (this.received >= CONFIRMED_BYTES) {
      this.connection.write(frame(WINDOW_UPDATE, 0, 0, uint32(this.received)));
      this.received = 0;
    }
    const { pending } = this;
    if (!isPending || pending === null) return;
    const body =
      (flags & PADDED) === 0 ? payload : payload.subarray(1, payload.length - payload.readUInt8(0));
    pending.body = Buffer.concat([pending.body, body]);
    const message = messageIn(pending.body);
    if (message !== null) this.settle()?.resolve(message);
    else if ((flags & END_STREAM) !== 0) this.reject("the response is incomplete");
  }

  private takeSettings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6)
      if (payload.readUInt16BE(at) === SETTINGS_INITIAL_WINDOW_SIZE)
        this.streamWindow = payload.readUInt32BE(at + 2);
    this.connection.write(frame(SETTINGS, ACK, 0));
  }
}

/** Where the calls of a connection go. */
export interface GrpcTarget {
  readonly url: string;
  /** `/service/method`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

function requestFrames(stream: number, head: Uint8Array, message: Uint8Array): Uint8Array[] {
  const frames = [frame(HEADERS, END_HEADERS, stream, head)];
  const body = Buffer.concat([Buffer.alloc(1), uint32(message.length), message]);
  for (let at = 0; at < body.length; at += FRAME_BYTES_MAX) {
    const isLast = at + FRAME_BYTES_MAX >= body.length;
    frames.push(frame(DATA, isLast ? END_STREAM : 0, stream, body.subarray(at, at + FRAME_BYTES_MAX)));
  }
  return frames;
}

function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes.writeUInt8(type, 3);
  bytes.writeUInt8(flags, 4);
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The first message of a body; null while it is incomplete. */
function messageIn(body: Uint8Array): Uint8Array | null {
  if (body.length < MESSAGE_PREFIX_BYTES) return null;
  const length = Buffer.from(body.buffer, body.byteOffset).readUInt32BE(1);
  return body.length < MESSAGE_PREFIX_BYTES + length
    ? null
    : body.subarray(MESSAGE_PREFIX_BYTES, MESSAGE_PREFIX_BYTES + length);
}

/** Header fields as literals, which no table of either end remembers (RFC 7541, section 6.2.2). */
function headerBlock(fields: Readonly<Record<string, string>>): Uint8Array {
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.alloc(1), literal(name), literal(value)]),
  );
}

const LENGTH_PREFIX_MAX = 127;

function literal(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const length: number[] = [Math.min(bytes.length, LENGTH_PREFIX_MAX)];
  if (bytes.length >= LENGTH_PREFIX_MAX) {
    let rest = bytes.length - LENGTH_PREFIX_MAX;
    for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}
