import type { ClientHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import { slices } from "../background/time-slices.ts";
import { errorCode, errorText } from "../errors.ts";
import { type Connection, CUT } from "./connection.ts";
import { http2Head, type RequestHeaders } from "./headers.ts";
import { type Deadline, OutboundFailure } from "./outcome.ts";
import { isPieces, type PieceBody } from "./piece-body.ts";
import {
  type BodyOptions,
  HEAD_BYTES_MAX,
  type HeaderPair,
  HeadTooLarge,
  ResponseReader,
} from "./response-reader.ts";
import type { Target } from "./target.ts";

/** Bytes of a body's byte that has a frame of its own: servers send that little in some of them, and no less. */
const BYTES_PER_BYTE_MAX = 10;
/** Bytes that are parsed without a look at the time: 455 frames at most. */
const PARSED_BYTES_MAX = 4_096;
/** What each header counts beyond its name and its value (RFC 9113, section 6.5.2): so many have no room for more. */
const HEADER_OVERHEAD_BYTES = 32;
/** `PROTOCOL_ERROR` and `NO_ERROR` of a stream (RFC 9113, section 7). */
const PROTOCOL_ERROR = 1;
const NO_ERROR = 0;

/** Most bytes that a server may send for one response, in frames of any kind. */
export function wireBytesMax({ bodyBytesMax }: Pick<BodyOptions, "bodyBytesMax">): number {
  return BYTES_PER_BYTE_MAX * bodyBytesMax + 4 * HEAD_BYTES_MAX;
}

/**
 * A connection to a checked address as the runtime's HTTP/2 needs it. What the server sends is passed on in small pieces, in
 * {@link slices} of the event loop, and only up to {@link wireBytesMax}.
 */
export class Http2Wire extends Duplex {
  /** Called when the server has sent more. */
  onTooMuch: () => void = () => {};
  private readonly pending: Buffer[] = [];
  private left: number;
  private isEnded = false;
  private isRead = false;
  private isPassing = false;

  constructor(
    readonly connection: Connection,
    wanted: BodyOptions,
  ) {
    super();
    this.left = wireBytesMax(wanted);
    // The stream of the request reports it.
    this.on("error", () => {});
    connection.listener = {
      onBytes: (bytes) => this.receive(bytes),
      onEnd: () => this.receive(null),
    };
    if (!connection.isOpen) this.receive(null);
  }

  override _read(): void {
    this.isRead = true;
    void this.passOn();
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.connection.write(bytes);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.connection.destroy();
    this.pending.length = 0;
    done(error);
  }

  /** Null: the server has closed the connection. */
  private receive(bytes: Buffer | null): void {
    if (bytes === null) this.isEnded = true;
    // One byte more shows that there are more.
    else if (this.left >= 0) {
      this.pending.push(bytes.subarray(0, this.left + 1));
      this.left -= bytes.length;
    }
    void this.passOn();
  }

  private async passOn(): Promise<void> {
    if (this.isPassing || !this.isRead) return;
    this.isPassing = true;
    // Bytes that are pushed while they are requested are only passed on later, all together.
    await Promise.resolve();
    for (let bytes = this.pending.shift(); bytes !== undefined; bytes = this.pending.shift()) {
      for (let at = 0; at < bytes.length && !this.destroyed; at += PARSED_BYTES_MAX) {
        if (slices.isOver) await slices.next();
        if (!this.destroyed) this.push(bytes.subarray(at, at + PARSED_BYTES_MAX));
      }
    }
    this.isPassing = false;
    if (this.destroyed) return;
    if (this.left < 0) this.onTooMuch();
    else if (this.isEnded) this.destroy();
  }
}

/** A request whose body is in one piece. */
interface Http2Request extends BodyOptions {
  readonly method: string;
  readonly headers: RequestHeaders;
  readonly body: Uint8Array | PieceBody | null;
}

/**
 * Sends one request over a new connection of HTTP/2 and reads the response. The connection is closed afterwards.
 *
 * @throws OutboundFailure `timeout`, `reset`, `malformed`, `too-large`
 */
export async function exchangeHttp2(
  wire: Http2Wire,
  target: Target,
  request: Http2Request,
  deadline: Deadline,
): Promise<ResponseReader> {
  // Loaded on use.
  const { connect } = await import("node:http2");
  const reader = new ResponseReader(request.method, request);
  const session = connect(target.url.origin, {
    createConnection: () => wire,
    settings: { enablePush: false, maxHeaderListSize: HEAD_BYTES_MAX },
    maxHeaderListPairs: HEAD_BYTES_MAX / HEADER_OVERHEAD_BYTES,
  });
  // The stream reports them, too; an error without a listener would end the process.
  session.on("error", () => {});
  try {
    await deadline.within<void>((settle) => {
      const body = isPieces(request.body) ? null : request.body;
      const stream = session.request(http2Head(target, request), { endStream: body === null });
      let failure: unknown = null;
      const read = (step: () => boolean): void => {
        try {
          if (step()) settle.resolve();
        } catch (error) {
          settle.reject(headFailure(error));
        }
      };
      wire.onTooMuch = () =>
        settle.reject(new OutboundFailure("too-large", "the server sent too many HTTP/2 frames"));
      stream.on("response", (headers, _flags, raw?: readonly string[]) =>
        read(() => reader.begin(Number(headers[":status"]), pairsOf(raw ?? []))),
      );
      stream.on("data", (bytes: Buffer) => read(() => reader.push(bytes)));
      stream.on("error", (error) => {
        failure = error;
      });
      stream.on("close", () => {
        if (failure === null && stream.rstCode === NO_ERROR && reader.end()) settle.resolve();
        else settle.reject(streamFailure(failure, stream));
      });
      if (body !== null) stream.end(body);
    });
  } finally {
    wire.onTooMuch = () => {};
    session.destroy();
    wire.destroy();
  }
  reader.address = wire.connection.address;
  return reader;
}

/** Names and values that follow each other, without those of HTTP/2 itself. */
function pairsOf(raw: readonly string[]): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = raw.slice(at, at + 2);
    if (!name.startsWith(":")) pairs.push([name, value]);
  }
  return pairs;
}

function headFailure(error: unknown): OutboundFailure {
  if (error instanceof HeadTooLarge)
    return new OutboundFailure("too-large", "the response's headers are too long");
  return malformed();
}

/** Errors of the runtime about what the server has sent. */
const MALFORMED_CODES: ReadonlySet<string> = new Set([
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
]);

/** Stands before the name of an error code in the runtime's message about a stream that was reset. */
const CODE_PREFIX = "NGHTTP2_";

function streamFailure(failure: unknown, { rstCode }: ClientHttp2Stream): OutboundFailure {
  if (failure === null) return new OutboundFailure("reset", CUT);
  const code = errorCode(failure);
  if (MALFORMED_CODES.has(code) || rstCode === PROTOCOL_ERROR) return malformed();
  if (code !== "ERR_HTTP2_STREAM_ERROR") return new OutboundFailure("reset", CUT);
  const reason = errorText(failure).split(CODE_PREFIX)[1] ?? rstCode;
  return new OutboundFailure("reset", `the HTTP/2 stream was reset (${reason})`);
}

function malformed(): OutboundFailure {
  return new OutboundFailure("malformed", "the response is not HTTP/2, or its headers are too long");
}
