import type { Database } from "../../../kernel/storage/database.ts";

export type SearchStore = ReturnType<typeof searchStore>;

/** All SQL of the index over values of logs. */
export function searchStore(db: Database) {
  return {
    add: db.change<[chainRef: number, hash: Uint8Array, sequence: number]>(
      "INSERT OR IGNORE INTO receipt_values (chain_ref, hash, sequence) VALUES (?, ?, ?)",
    ),
    /** Newest position at or before `sequence` with a value; 0 without one. */
    newest: db.number<[chainRef: number, hash: Uint8Array, sequence: number]>(
      "SELECT max(sequence) AS n FROM receipt_values WHERE chain_ref = ? AND hash = ? AND sequence <= ?",
    ),
    /** Time of the first receipt at or after a position, epoch milliseconds; 0 past the end. */
    timeAt: db.number<[chainRef: number, sequence: number]>(
      "SELECT at AS n FROM receipts WHERE chain_ref = ? AND sequence >= ? ORDER BY sequence LIMIT 1",
    ),
    setSettings: db.change<[fields: string | null, retainDays: number, chainRef: number]>(
      "UPDATE chains SET index_fields = ?, retain_days = ? WHERE ref = ?",
    ),
    removeOfReceipt: db.erasure<[chainRef: number, sequence: number]>(
      "DELETE FROM receipt_values WHERE chain_ref = ? AND sequence = ?",
    ),
    remove: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipt_values WHERE (chain_ref, hash, sequence) IN (SELECT chain_ref, hash, sequence FROM receipt_values WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
