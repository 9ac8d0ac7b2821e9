import { ApiError } from "../../errors.ts";
import { type Cancel, realTimeout } from "../../time/clock.ts";
import { type LargeBodySlot, readingError } from "./bodies-in-progress.ts";

/** Bytes of a large body that are in memory: with 256 of them at a time, 64 MiB. */
export const PIECE_BYTES = 256 * 1024;

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
  private readonly piece = new Uint8Array(PIECE_BYTES);
  private rest: Uint8Array;
  private isAtEnd = false;

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
    const overdue = Promise.withResolvers<never>();
    overdue.promise.catch(() => undefined);
    const cancel: Cancel = realTimeout(this.slot.pieceMsMax, () =>
      overdue.reject(tooSlow(this.slot.pieceMsMax)),
    );
    try {
      while (filled < PIECE_BYTES && !this.isAtEnd) {
        if (this.rest.length === 0) {
          const { done, value } = await Promise.race([this.source.read(), overdue.promise]);
          if (done || value === undefined) {
            this.isAtEnd = true;
            await this.source.ended();
            break;
          }
          this.rest = value;
        }
        const taken = this.rest.subarray(0, PIECE_BYTES - filled);
        this.piece.set(taken, filled);
        filled += taken.length;
        this.rest = this.rest.subarray(taken.length);
        this.size += taken.length;
        if (this.size > this.bytesMax) throw await this.source.tooLarge();
      }
    } catch (error) {
      throw readingError(error);
    } finally {
      cancel();
    }
    return filled === 0 ? null : this.piece.subarray(0, filled);
  }

  /** Ends it, also before its end: what is left is not read. */
  close(): void {
    this.rest = new Uint8Array();
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
