import { ApiError } from "../../errors.ts";
import { HeldBytes, type HoldLimits, type Sender } from "../held-bytes.ts";

const MIB = 1024 * 1024;

/** As many as of bodies that arrive: a reader that reads nothing holds no more than a sender that sends nothing. */
export const OUTGOING_LIMITS: HoldLimits = { senderBytesMax: 64 * MIB, bytesMax: 256 * MIB };

/** Larger responses are counted and sent piece by piece. What is smaller fits into the buffers of a connection. */
export const LARGE_RESPONSE_BYTES = 64 * 1024;
/** Bytes of a piece that waits in front of a connection. */
export const PIECE_BYTES = 64 * 1024;
/** Seconds in which a reader must take a piece; then its connection is closed. */
export const READER_IDLE_SECONDS = 30;

/** Bytes that many responses share, so that a reader holds a piece of them at most. */
const shared = new WeakSet<object>();

/** Declares bytes that are kept in memory anyway: a reader of them is counted with a piece. */
export function sharedBytes<Bytes extends Uint8Array>(bytes: Bytes): Bytes {
  shared.add(bytes);
  return bytes;
}

/** The bytes that a body holds until its reader has taken them. */
export function heldBy(body: string | Uint8Array): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return shared.has(body) ? Math.min(body.length, PIECE_BYTES) : body.length;
}

/** The large responses that are being made and sent, by the account of their readers, or their network without a key. */
export class OutgoingBodies extends HeldBytes {
  /** Seconds after which a reader that takes nothing is disconnected. */
  readerIdleSeconds = READER_IDLE_SECONDS;

  constructor(limits: HoldLimits = OUTGOING_LIMITS) {
    super(limits, tooMany);
  }

  /** Begins a response. It counts nothing yet. */
  begin(reader: Sender): OutgoingBody {
    return new OutgoingBody(this, reader);
  }
}

/** One response, from its first byte in memory until its reader has taken the last one. */
export class OutgoingBody {
  private bytes = 0;
  private hasEnded = false;

  constructor(
    private readonly all: OutgoingBodies,
    private readonly reader: Sender,
  ) {}

  /** Counts more bytes. @throws ApiError `service_unavailable` beyond a limit. */
  grow(bytes: number): void {
    if (this.hasEnded) return;
    this.all.add(this.reader, bytes);
    this.bytes += bytes;
  }

  /** Counts so many bytes from now on. @throws ApiError as {@link grow}. */
  resize(bytes: number): void {
    if (bytes > this.bytes) this.grow(bytes - this.bytes);
    else this.shrink(bytes);
  }

  /** Counts at most so many bytes from now on. */
  shrink(bytes: number): void {
    if (bytes >= this.bytes) return;
    this.all.remove(this.reader, this.bytes - bytes);
    this.bytes = bytes;
  }

  /** Counts it no longer. */
  end(): void {
    this.hasEnded = true;
    this.all.remove(this.reader, this.bytes);
    this.bytes = 0;
  }
}

function tooMany(): ApiError {
  const message =
    "Too many large responses are being sent at the same time. Read them to their end, request fewer concurrently, and retry.";
  return new ApiError("service_unavailable", message, { retryAfterSeconds: 1 });
}
