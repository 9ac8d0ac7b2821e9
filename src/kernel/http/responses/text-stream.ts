import { slices, type TimeSlices } from "../../background/time-slices.ts";
import { rejectionBy } from "../../errors.ts";
import type { Cancel } from "../../time/clock.ts";
import { PIECE_BYTES, type READER_IDLE_SECONDS } from "./outgoing-bodies.ts";

/** A body that is made, or handed over, while it is sent. */
export interface PieceSource<Piece extends string | Uint8Array> {
  /** The next piece, made within some milliseconds; null at the end. */
  next(): Piece | null;
  /** Called once, however the sending ends. */
  end(): void;
}

/** Text that is made while it is sent. */
export type TextSource = PieceSource<string>;

/** The call that a stream responds to. */
export interface StreamedCall {
  readonly request: Request;
  /** What a piece that was just made must wait for; null: nothing. */
  readonly confirmation: Promise<void> | null;
  /** Runs `onIdle` if its reader takes nothing for some time from now on. The result cancels that. */
  awaitReader(onIdle: () => void): Cancel;
  /** @throws ApiError when its caller's responses hold too much. */
  holdForResponse(bytes: number): void;
  releaseResponse(): void;
  /** Checks again whether its caller may have what follows. Omitted: anyone may. @throws ApiError */
  reauthorize?(): void;
}

const UTF8 = new TextEncoder();

/**
 * The body of a response whose text is made a piece at a time, as fast as its reader takes it. However fast that is, other
 * requests have their turn between the slices.
 */
export function textStream(
  call: StreamedCall,
  source: TextSource,
  timeSlices: Pick<TimeSlices, "isOver" | "next"> = slices,
): ReadableStream<Uint8Array> | string {
  return startedStream(call, source, PIECE_BYTES, timeSlices);
}

/** A stream whose pieces are counted while they are sent. */
function startedStream(
  call: StreamedCall,
  source: PieceSource<string | Uint8Array>,
  pieceBytes: number,
  timeSlices: Pick<TimeSlices, "isOver" | "next">,
): ReadableStream<Uint8Array> | string {
  // Nobody would ever read it.
  if (call.request.method === "HEAD") {
    source.end();
    return "";
  }
  const excess = rejectionBy(() => call.holdForResponse(pieceBytes));
  if (excess !== null) {
    source.end();
    throw excess;
  }
  return pieceStream(call, whileAuthorized(call, source), timeSlices);
}

/** Ends with an error once its caller may not read any more: a slow reader can take very long. */
function whileAuthorized(
  call: StreamedCall,
  source: PieceSource<string | Uint8Array>,
): PieceSource<string | Uint8Array> {
  return {
    next() {
      const rejection = rejectionBy(() => call.reauthorize?.());
      // The login was recent enough when it began.
      if (rejection !== null && rejection.code !== "login_required") throw rejection;
      return source.next();
    },
    end: () => source.end(),
  };
}

/** The body of a response that is stored in pieces: the next one is read when its reader has taken those before. */
export function bodyStream(
  call: StreamedCall,
  body: { readonly pieceBytes: number; pieces(): Iterable<Uint8Array> },
): ReadableStream<Uint8Array> | string {
  const pieces = body.pieces()[Symbol.iterator]();
  const source: PieceSource<Uint8Array> = {
    next() {
      const { done, value } = pieces.next();
      return done === true ? null : value;
    },
    end: () => void pieces.return?.(),
  };
  return startedStream(call, source, body.pieceBytes, slices);
}

/** The pieces of a body that is complete. */
export function piecesOf(body: string | Uint8Array): PieceSource<string | Uint8Array> {
  let rest: string | Uint8Array = body;
  let at = 0;
  return {
    next() {
      if (at >= rest.length) return null;
      let end = Math.min(at + PIECE_BYTES, rest.length);
      // A character of two units stays whole.
      if (typeof rest === "string" && end < rest.length && isHighSurrogate(rest.charCodeAt(end - 1)))
        end -= 1;
      const piece = typeof rest === "string" ? rest.slice(at, end) : rest.subarray(at, end);
      at = end;
      return piece;
    },
    end() {
      rest = "";
    },
  };
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/**
 * A body that is sent a piece at a time, as fast as its reader takes it: a reader that takes nothing for
 * {@link READER_IDLE_SECONDS} is disconnected.
 */
export function pieceStream(
  call: Omit<StreamedCall, "holdForResponse">,
  source: PieceSource<string | Uint8Array>,
  timeSlices: Pick<TimeSlices, "isOver" | "next"> = slices,
): ReadableStream<Uint8Array> {
  let hasEnded = false;
  let cancelIdle: Cancel = () => undefined;
  const end = (): void => {
    cancelIdle();
    if (hasEnded) return;
    hasEnded = true;
    source.end();
    call.releaseResponse();
  };
  // A client that goes away does not always cancel.
  call.request.signal.addEventListener("abort", end, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        cancelIdle();
        try {
          if (timeSlices.isOver) await timeSlices.next();
          const piece = hasEnded ? null : source.next();
          await call.confirmation;
          if (piece !== null) {
            // The runtime's own timer for idle connections does not always end one whose reader takes nothing.
            if (!hasEnded)
              cancelIdle = call.awaitReader(() => {
                controller.error(new Error("the reader takes nothing"));
                end();
              });
            return controller.enqueue(typeof piece === "string" ? UTF8.encode(piece) : piece);
          }
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      cancel: end,
    },
    // Nothing is made before it is requested.
    { highWaterMark: 0 },
  );
}
