import type { Database } from "../../../kernel/storage/database.ts";

/** A row of `notary_witnesses`. */
export type WitnessRow = {
  readonly name: string;
  readonly url: string;
  readonly vkey: string;
  readonly epoch: number;
  readonly size: number;
  readonly cosigned_at: number | null;
  readonly last_error: string | null;
};

/** A cosignature of a stored checkpoint. */
export type CosignatureRow = {
  readonly vkey: string;
  /** As it is in the note, without the newline. */
  readonly line: string;
  readonly signed_at: number;
};

export type WitnessStore = ReturnType<typeof witnessStore>;

/** All SQL of the witnesses of chains, and of what they have cosigned. */
export function witnessStore(db: Database) {
  const columns = "name, url, vkey, epoch, size, cosigned_at, last_error";
  return {
    witnesses: db.all<WitnessRow, [chainRef: number]>(
      `SELECT ${columns} FROM notary_witnesses WHERE chain_ref = ? ORDER BY position`,
    ),
    add: db.change<[WitnessRow & { chain_ref: number; position: number }]>(
      `INSERT INTO notary_witnesses (chain_ref, position, ${columns})
       VALUES ($chain_ref, $position, $name, $url, $vkey, $epoch, $size, $cosigned_at, $last_error)`,
    ),
    /** Records a cosignature. */
    setCosigned: db.change<
      [{ chain_ref: number; vkey: string; epoch: number; size: number; cosigned_at: number }]
    >(
      `UPDATE notary_witnesses SET epoch = $epoch, size = $size, cosigned_at = $cosigned_at, last_error = NULL
       WHERE chain_ref = $chain_ref AND vkey = $vkey`,
    ),
    setError: db.change<[error: string, chainRef: number, vkey: string]>(
      "UPDATE notary_witnesses SET last_error = ? WHERE chain_ref = ? AND vkey = ?",
    ),
    removeWitnesses: db.change<[chainRef: number]>("DELETE FROM notary_witnesses WHERE chain_ref = ?"),
    cosignatures: db.all<CosignatureRow, [chainRef: number, epoch: number, size: number]>(
      `SELECT vkey, line, signed_at FROM notary_cosignatures
       WHERE chain_ref = ? AND epoch = ? AND size = ? ORDER BY vkey`,
    ),
    /** Stores a cosignature; a later one of the same witness replaces it. */
    addCosignature: db.change<[CosignatureRow & { chain_ref: number; epoch: number; size: number }]>(
      `INSERT OR REPLACE INTO notary_cosignatures (chain_ref, epoch, size, vkey, line, signed_at)
       VALUES ($chain_ref, $epoch, $size, $vkey, $line, $signed_at)`,
    ),
    removeCosignatures: db.change<[chainRef: number, epoch: number, size: number]>(
      "DELETE FROM notary_cosignatures WHERE chain_ref = ? AND epoch = ? AND size = ?",
    ),
    removeAllCosignatures: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM notary_cosignatures WHERE ref IN (SELECT ref FROM notary_cosignatures WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
