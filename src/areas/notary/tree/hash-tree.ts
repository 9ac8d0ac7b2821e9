import type { VerifierCrypto } from "../../../verify/receipt.ts";
import { emptyRoot, nodeHashOf } from "../../../verify/tree.ts";

/** Height of a tile, and its hashes: the tiles of c2sp.org/tlog-tiles. */
const TILE_HEIGHT = 8;
export const TILE_WIDTH = 2 ** TILE_HEIGHT;

/** Reads stored hashes: of leaves at level 0, of full tiles of the level below at every other. */
export interface TileSource {
  /** Returns at most `count` hashes of a level from an index, fewer at the end. */
  hashes(level: number, first: number, count: number): Uint8Array[];
}

/**
 * The Merkle tree over the stored hashes. It reads each tile once, so that a proof costs a few tiles and some hundreds of
 * hashes, however large the tree is. For one unit of work or one response.
 */
export class HashTree {
  private readonly tiles = new Map<string, readonly Uint8Array[]>();

  constructor(
    private readonly crypto: Pick<VerifierCrypto, "sha256">,
    private readonly source: TileSource,
  ) {}

  /** The root of the tree of the first `size` leaves. */
  root(size: number): Uint8Array {
    return size === 0 ? emptyRoot(this.crypto) : this.range(0, size);
  }

  /** The inclusion proof of a leaf (RFC 6962, section 2.1.1). `index` is below `size`. */
  inclusion(index: number, size: number): Uint8Array[] {
    const hashes: Uint8Array[] = [];
    for (let [first, count] = [0, size]; count > 1; ) {
      const left = leftSize(count);
      const isLeft = index < first + left;
      hashes.push(isLeft ? this.range(first + left, count - left) : this.range(first, left));
      [first, count] = isLeft ? [first, left] : [first + left, count - left];
    }
    return hashes.reverse();
  }

  /** The consistency proof between two sizes (RFC 6962, section 2.1.2). `from` is not above `to`. */
  consistency(from: number, to: number): Uint8Array[] {
    if (from === 0 || from === to) return [];
    const hashes: Uint8Array[] = [];
    let [first, count] = [0, to];
    while (from !== first + count) {
      const left = leftSize(count);
      const isLeft = from <= first + left;
      hashes.push(isLeft ? this.range(first + left, count - left) : this.range(first, left));
      [first, count] = isLeft ? [first, left] : [first + left, count - left];
    }
    // The verifier knows the root of the older tree, and so of a subtree that begins where the tree does.
    return (first === 0 ? hashes : [...hashes, this.range(first, count)]).reverse();
  }

  /** The hashes of a tile: 256, fewer at the end of a level. */
  tile(level: number, tile: number): readonly Uint8Array[] {
    const name = `${level}/${tile}`;
    const known = this.tiles.get(name);
    if (known !== undefined) return known;
    const hashes = this.source.hashes(level, tile * TILE_WIDTH, TILE_WIDTH);
    this.tiles.set(name, hashes);
    return hashes;
  }

  /** The root of a full tile. */
  tileRoot(level: number, tile: number): Uint8Array {
    return this.fold(level, tile * TILE_WIDTH, TILE_WIDTH);
  }

  /** The hash over the leaves from `first`: of a perfect subtree, or of the end of a tree. */
  private range(first: number, count: number): Uint8Array {
    const left = leftSize(count);
    if (left * 2 !== count && count !== 1)
      return nodeHashOf(this.crypto, this.range(first, left), this.range(first + left, count - left));
    const level = Math.floor(Math.log2(count) / TILE_HEIGHT);
    const width = TILE_WIDTH ** level;
    return this.fold(level, first / width, count / width);
  }

  /** The hash over `count` hashes of a level, a power of two that lies in one tile. */
  private fold(level: number, first: number, count: number): Uint8Array {
    const start = first % TILE_WIDTH;
    let hashes = this.tile(level, Math.floor(first / TILE_WIDTH)).slice(start, start + count);
    if (hashes.length < count) throw new Error(`the tree lacks hashes from ${first} of level ${level}`);
    while (hashes.length > 1) {
      const above: Uint8Array[] = [];
      for (const [at, left] of hashes.entries()) {
        const right = hashes[at + 1];
        if (at % 2 === 0 && right !== undefined) above.push(nodeHashOf(this.crypto, left, right));
      }
      hashes = above;
    }
    const [root] = hashes;
    if (root === undefined) throw new Error("an empty range has no hash");
    return root;
  }
}

/** Size of the left subtree of a tree: the largest power of two below its size. */
function leftSize(count: number): number {
  return 2 ** (Math.ceil(Math.log2(count)) - 1);
}
