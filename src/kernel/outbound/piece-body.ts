import { slices } from "../background/time-slices.ts";

/** A body that is read piece by piece, each time anew. */
export interface PieceBody {
  /** Bytes of all pieces. */
  readonly length: number;
  /** The pieces in their order, each read when it is needed. @throws Error when the body is removed meanwhile */
  pieces(): Iterable<Uint8Array>;
}

/** Whether a body is read piece by piece. */
export function isPieces(body: Uint8Array | string | PieceBody | null): body is PieceBody {
  return body !== null && typeof body === "object" && "pieces" in body;
}

/** Feeds all pieces to hashers, in slices of the event loop. */
export async function updateInSlices(
  hashers: readonly Pick<Bun.CryptoHasher, "update">[],
  body: PieceBody,
): Promise<void> {
  for (const piece of body.pieces()) {
    for (const hasher of hashers) hasher.update(piece);
    // Many bodies make garbage faster than it is collected.
    if (piece.buffer instanceof ArrayBuffer) piece.buffer.transfer(0);
    if (slices.isOver) await slices.next();
  }
}
