import type { Database } from "../../../kernel/storage/database.ts";

/** A row of `notary_checkpoints`. */
export type CheckpointRow = {
  readonly size: number;
  readonly root: Uint8Array;
  readonly signature: Uint8Array;
  readonly signed_at: number;
};

export type CheckpointStore = ReturnType<typeof checkpointStore>;

/** All SQL of checkpoints. */
export function checkpointStore(db: Database) {
  const columns = "size, root, signature, signed_at";
  return {
    add: db.change<[CheckpointRow & { chain_ref: number; epoch: number }]>(
      `INSERT INTO notary_checkpoints (chain_ref, epoch, ${columns})
       VALUES ($chain_ref, $epoch, $size, $root, $signature, $signed_at)`,
    ),
    /** The newest checkpoint of an epoch. */
    newest: db.one<CheckpointRow, [chainRef: number, epoch: number]>(
      `SELECT ${columns} FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ? ORDER BY size DESC LIMIT 1`,
    ),
    /** Two neighbours, the newer one first, after the newest `skipped`. */
    pairAfter: db.all<
      Pick<CheckpointRow, "size" | "signed_at">,
      [ref: number, epoch: number, skipped: number]
    >(
      `SELECT size, signed_at FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ?
       ORDER BY size DESC LIMIT 2 OFFSET ?`,
    ),
    remove: db.change<[chainRef: number, epoch: number, size: number]>(
      "DELETE FROM notary_checkpoints WHERE chain_ref = ? AND epoch = ? AND size = ?",
    ),
    removeAll: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM notary_checkpoints WHERE (chain_ref, epoch, size) IN (SELECT chain_ref, epoch, size FROM notary_checkpoints WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
