import { hash } from "node:crypto";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { createNativeCrypto } from "../../../verify/native.ts";
import { type LeafFields, leafText } from "../../../verify/tree.ts";
import type { ChainActor } from "../chain.ts";
import { HashTree, TILE_WIDTH } from "./hash-tree.ts";
import type { TreeStore } from "./store.ts";

/** The Merkle trees over the chains' receipts, as they are stored. */
export class ReceiptTrees {
  private readonly crypto = createNativeCrypto();

  constructor(private readonly store: TreeStore) {}

  /**
   * Adds the leaf of a receipt, and the roots of the tiles that it fills. A tree with a backlog gets only the leaf: see
   * {@link fillTile}.
   */
  add(tx: Tx, chain: Pick<ChainActor, "ref" | "backlog">, receipt: LeafFields): void {
    const sequence = Number(receipt.sequence_id);
    this.store.addLeaf(tx, chain.ref, sequence, leafHash(receipt));
    if (chain.backlog === 0 && sequence % TILE_WIDTH === 0) this.fillTile(tx, chain.ref, sequence);
  }

  /** Adds the roots of all tiles that end with the leaf of this receipt, whose position is a multiple of 256. */
  fillTile(tx: Tx, chainRef: number, sequence: number): void {
    const tree = this.of(chainRef);
    let tiles = sequence;
    for (let level = 0; tiles % TILE_WIDTH === 0; level += 1) {
      tiles /= TILE_WIDTH;
      this.store.addTileRoot(tx, chainRef, level, tiles - 1, tree.tileRoot(level, tiles - 1));
    }
  }

  /** The tree of a chain as it is now. */
  of(chainRef: number): HashTree {
    return new HashTree(this.crypto, {
      hashes: (level, first, count) =>
        (level === 0
          ? this.store.leaves(chainRef, first + 1, count)
          : this.store.tileRoots(chainRef, level - 1, first, count)
        ).map((row) => row.hash),
    });
  }

  /** Removes at most `rowsMax` rows of a chain. Returns the number of rows removed. */
  remove(tx: Tx, chainRef: number, rowsMax: number): number {
    const leaves = this.store.removeLeaves(tx, chainRef, rowsMax);
    return leaves === rowsMax ? leaves : leaves + this.store.removeTileRoots(tx, chainRef, rowsMax - leaves);
  }
}

/** Returns the hash of a receipt's leaf, from one text: for every receipt, joining bytes would take as long as hashing them. */
export function leafHash(receipt: LeafFields): Uint8Array {
  return hash("sha256", `\0${leafText(receipt)}`, "buffer");
}
