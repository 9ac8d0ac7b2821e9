import { slices } from "../background/time-slices.ts";

/** A body that is read piece by piece, each time anew. */
export interface PieceBody {
  /** Bytes of all pieces. */
  readonly length: number;
  /** Bytes of the largest piece: a reader holds one in memory. */
  readonly pieceBytes: number;
  /** The pieces in their order, each read when it is needed. @throws Error when the body is removed meanwhile */
  pieces(): Iterable<Uint8Array>;
}

/** Whether a body is read piece by piece. */
export function isPieces(body: Uint8Array | string | PieceBody | null): body is PieceBody {
  return body !== null && typeof body === "object" && "pieces" in body;
}

type Hashers = readonly Pick<Bun.CryptoHasher, "update">[];

/** A pass over a body that begins soon. */
interface Pass {
  readonly hashers: Hashers[number][];
  readonly done: Promise<void>;
}

const beginning = new WeakMap<PieceBody, Pass>();

/** Feeds all pieces to hashers, in slices of the event loop. What is called for the same body in the same turn shares one pass. */
export function updateInSlices(hashers: Hashers, body: PieceBody): Promise<void> {
  let pass = beginning.get(body);
  if (pass === undefined) {
    const all: Hashers[number][] = [];
    pass = { hashers: all, done: slices.next().then(() => runPass(all, body)) };
    beginning.set(body, pass);
  }
  pass.hashers.push(...hashers);
  return pass.done;
}

async function runPass(hashers: Hashers, body: PieceBody): Promise<void> {
  beginning.delete(body);
  for (const piece of body.pieces()) {
    for (const hasher of hashers) hasher.update(piece);
    // Many bodies make garbage faster than it is collected.
    if (piece.buffer instanceof ArrayBuffer) piece.buffer.transfer(0);
    if (slices.isOver) await slices.next();
  }
}
