import type { Database } from "../../../kernel/storage/database.ts";

/** What is stored of a receipt instead of its log. */
export interface WithoutLogRow {
  readonly content_hash: Uint8Array;
  /** Null without one, and once it is deleted. */
  readonly note: string | null;
  /** Epoch milliseconds; null if nothing was deleted. */
  readonly redacted_at: number | null;
}

/** A chain whose logs are deleted by age. */
export interface RetentionRow {
  readonly ref: number;
  readonly project_ref: number;
  readonly retain_days: number;
  /** Position up to which that is done. */
  readonly retained_after: number;
}

/** All SQL of receipts without a log, and of the deletion of logs. */
export function redactionStore(db: Database) {
  return {
    withoutLog: db.one<WithoutLogRow, [chainRef: number, sequence: number]>(
      "SELECT content_hash, note, redacted_at FROM receipts_without_log WHERE chain_ref = ? AND sequence = ?",
    ),
    addHash: db.change<
      [
        {
          chain_ref: number;
          sequence: number;
          content_hash: Uint8Array;
          note: string | null;
        },
      ]
    >(
      `INSERT INTO receipts_without_log (chain_ref, sequence, content_hash, note)
       VALUES ($chain_ref, $sequence, $content_hash, $note)`,
    ),
    /** Deletes a log's text. Its bytes are overwritten in the file. */
    eraseLog: db.erasure<[chainRef: number, sequence: number]>(
      "UPDATE receipts SET log = '' WHERE chain_ref = ? AND sequence = ?",
    ),
    /** Notes the deletion, and deletes the note. */
    setRedacted: db.erasure<
      [
        {
          chain_ref: number;
          sequence: number;
          content_hash: Uint8Array;
          now: number;
        },
      ]
    >(
      `INSERT INTO receipts_without_log (chain_ref, sequence, content_hash, redacted_at)
       VALUES ($chain_ref, $sequence, $content_hash, $now)
       ON CONFLICT DO UPDATE SET note = NULL, redacted_at = $now`,
    ),
    /** The next chain with a retention. */
    nextRetention: db.one<RetentionRow, [afterRef: number]>(
      `SELECT ref, project_ref, retain_days, retained_after FROM chains
       WHERE retain_days > 0 AND ref > ? ORDER BY ref LIMIT 1`,
    ),
    setRetainedAfter: db.change<[sequence: number, ref: number]>(
      "UPDATE chains SET retained_after = ? WHERE ref = ?",
    ),
    remove: db.change<[chainRef: number, rowsMax: number]>(
      "DELETE FROM receipts_without_log WHERE (chain_ref, sequence) IN (SELECT chain_ref, sequence FROM receipts_without_log WHERE chain_ref = ? LIMIT ?)",
    ),
  };
}
