import { ApiError } from "../../errors.ts";
import { monotonicMs, realTimeout } from "../../time/clock.ts";
import { type LargeBodySlot, readingError } from "./bodies-in-progress.ts";

/** Bytes of a large body that are in memory: with 256 of them at a time, 64 MiB. */
export const PIECE_BYTES = 256 * 1024;

/** Longest wait for the next bytes of a body before others get its turn at reading: what a sender nearby needs to send more. */
const TURN_WAIT_MS = 10;

/**
 * The share of the time for a piece after which its body is read after those of other senders: they would wait for a slow one. With
 * 10 s, those that send less than a MiB per second.
 */
const SLOW_SHARE = 1 / 40;

type Chunk = { readonly done: boolean; readonly value?: Uint8Array | undefined };

/** What a large body is read from. */
export interface LargeBodySource {
  /** What was read of it already. */
  readonly start: Uint8Array;
  read(): Promise<Chunk>;
  /** Rejects a body that has trailer fields behind its last chunk. */
  ended(): Promise<void>;
  /** The error of a body that is larger than its limit, once its sender can read it. */
  tooLarge(): Promise<ApiError>;
  cancel(): void;
}

/** A body that is read piece by piece, while it arrives. The sender waits while a piece is processed. */
export class LargeBody {
  /** Bytes returned so far. */
  size = 0;
  /** Allocated when the body is first read: many wait for that. */
  private piece: Uint8Array<ArrayBuffer> | null = null;
  private rest: Uint8Array;
  private isAtEnd = false;
  /** Ends its turn at reading; null outside. */
  private release: (() => void) | null = null;
  /** How long it waited for its last turn, in milliseconds. */
  private turnMs = 0;

  constructor(
    private readonly source: LargeBodySource,
    private readonly slot: LargeBodySlot,
    private readonly bytesMax: number,
    /** Its `Content-Length`; null without one. */
    readonly declared: number | null,
  ) {
    this.rest = source.start;
  }

  /**
   * The next piece of {@link PIECE_BYTES}, or what is left; null at the end. Its bytes are replaced by the next call.
   *
   * @throws ApiError `request_too_large` beyond the limit, `timeout` when the sender is too slow, `validation_error` when the
   *   sender goes away or sends trailer fields.
   */
  async next(): Promise<Uint8Array | null> {
    let filled = 0;
    let leftMs = this.slot.pieceMsMax;
    try {
      while (filled < PIECE_BYTES && !this.isAtEnd) {
        if (this.rest.length === 0) {
          const startedAt = monotonicMs();
          const { done, value } = await this.read(leftMs);
          leftMs -= monotonicMs() - startedAt - this.turnMs;
          if (done || value === undefined) {
            this.isAtEnd = true;
            this.releaseTurn();
            await this.source.ended();
            break;
          }
          this.rest = value;
        }
        this.piece ??= new Uint8Array(PIECE_BYTES);
        const taken = this.rest.subarray(0, PIECE_BYTES - filled);
        this.piece.set(taken, filled);
        filled += taken.length;
        this.rest = this.rest.subarray(taken.length);
        this.size += taken.length;
        if (this.size > this.bytesMax) throw await this.source.tooLarge();
        if (this.rest.length === 0) this.dropChunk();
      }
    } catch (error) {
      throw readingError(error);
    }
    return filled === 0 || this.piece === null ? null : this.piece.subarray(0, filled);
  }

  /** Reads the next chunk within some time, in which the wait for its turn does not count. */
  private async read(withinMs: number): Promise<Chunk> {
    const { turns, pieceMsMax } = this.slot;
    this.releaseTurn();
    if (pieceMsMax - withinMs > pieceMsMax * SLOW_SHARE) turns.goLast();
    const startedAt = monotonicMs();
    this.release = await turns.take();
    this.turnMs = monotonicMs() - startedAt;
    const overdue = Promise.withResolvers<never>();
    const cancelWait = realTimeout(TURN_WAIT_MS, () => this.releaseTurn());
    const cancel = realTimeout(Math.max(0, withinMs), () => overdue.reject(tooSlow(pieceMsMax)));
    try {
      return await Promise.race([this.source.read(), overdue.promise]);
    } finally {
      cancelWait();
      cancel();
    }
  }

  private releaseTurn(): void {
    this.release?.();
    this.release = null;
  }

  /** Frees the memory of a chunk immediately: a hundred bodies make garbage faster than it is collected. */
  private dropChunk(): void {
    const { buffer } = this.rest;
    this.rest = new Uint8Array();
    if (buffer instanceof ArrayBuffer && buffer.byteLength >= PIECE_BYTES) buffer.transfer(0);
  }

  /** Ends it, also before its end: what is left is not read. */
  close(): void {
    this.rest = new Uint8Array();
    // Immediately, like a chunk.
    this.piece?.buffer.transfer(0);
    this.piece = null;
    this.releaseTurn();
    this.slot.end();
    if (!this.isAtEnd) this.source.cancel();
    this.isAtEnd = true;
  }
}

function tooSlow(pieceMsMax: number): ApiError {
  return new ApiError(
    "timeout",
    `The body is sent too slowly: less than ${PIECE_BYTES / 1024} KiB arrived within ${pieceMsMax / 1_000} s.`,
    { headers: { connection: "close" } },
  );
}
