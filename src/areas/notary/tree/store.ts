import type { Database } from "../../../kernel/storage/database.ts";

interface HashRow {
  readonly hash: Uint8Array;
}

export type TreeStore = ReturnType<typeof treeStore>;

/** All SQL of the tree: its leaves, the roots of full tiles, and what earlier versions did not store. */
export function treeStore(db: Database) {
  return {
    // Hot path: positional parameters are faster than named ones.
    addLeaf: db.change<[chainRef: number, sequence: number, hash: Uint8Array]>(
      "INSERT INTO receipt_leaves (chain_ref, sequence, hash) VALUES (?, ?, ?)",
    ),
    leaves: db.all<HashRow, [chainRef: number, first: number, limit: number]>(
      "SELECT hash FROM receipt_leaves WHERE chain_ref = ? AND sequence >= ? ORDER BY sequence LIMIT ?",
    ),
    addTileRoot: db.change<[chainRef: number, level: number, tile: number, hash: Uint8Array]>(
      "INSERT INTO notary_tile_roots (chain_ref, level, tile, hash) VALUES (?, ?, ?, ?)",
    ),
    tileRoots: db.all<HashRow, [chainRef: number, level: number, first: number, limit: number]>(
      "SELECT hash FROM notary_tile_roots WHERE chain_ref = ? AND level = ? AND tile >= ? ORDER BY tile LIMIT ?",
    ),
    /** Number of full tiles of leaves whose roots are stored. */
    fullTiles: db.number<[chainRef: number]>(
      "SELECT max(tile) + 1 AS n FROM notary_tile_roots WHERE chain_ref = ? AND level = 0",
    ),
    /** Last position up to which leaves are stored, not above `backlog`. */
    lastLeaf: db.number<[chainRef: number, backlog: number]>(
      "SELECT max(sequence) AS n FROM receipt_leaves WHERE chain_ref = ? AND sequence <= ?",
    ),
    /** Projects whose tree is not complete. */
    incomplete: db.all<{ readonly project_ref: number }, []>(
      "SELECT project_ref FROM chains WHERE tree_backlog > 0 ORDER BY ref",
    ),
    complete: db.change<[chainRef: number]>("UPDATE chains SET tree_backlog = 0 WHERE ref = ?"),
    removeLeaves: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipt_leaves WHERE (chain_ref, sequence) IN (SELECT chain_ref, sequence FROM receipt_leaves WHERE chain_ref = ? LIMIT ?)",
    ),
    removeTileRoots: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM notary_tile_roots WHERE (chain_ref, level, tile) IN (SELECT chain_ref, level, tile FROM notary_tile_roots WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
