import type { Database } from "../../../kernel/storage/database.ts";

/** An id that a bucket's sender gave to an event. */
interface SeenRow {
  readonly bucket_ref: number;
  readonly digest: Uint8Array;
  readonly sequence: number;
  readonly expires_at: number;
}

/** What a bucket has taken in, by the ids that its sender gave. */
export function seenStore(db: Database) {
  return {
    seen: db.one<Pick<SeenRow, "sequence">, [bucketRef: number, digest: Uint8Array, now: number]>(
      "SELECT sequence FROM catch_seen WHERE bucket_ref = ? AND digest = ? AND expires_at > ?",
    ),
    /** An id whose time is over is as good as new. */
    addSeen: db.change<[{ [Name in keyof SeenRow]: SeenRow[Name] }]>(
      `INSERT INTO catch_seen (bucket_ref, digest, sequence, expires_at) VALUES ($bucket_ref, $digest, $sequence, $expires_at)
       ON CONFLICT DO UPDATE SET sequence = excluded.sequence, expires_at = excluded.expires_at`,
    ),
    addDuplicate: db.change<[bucketRef: number, sequence: number]>(
      "UPDATE catch_events SET duplicates = duplicates + 1 WHERE bucket_ref = ? AND sequence = ?",
    ),
    forgetSeen: db.change<[now: number, rowsMax: number]>(
      `DELETE FROM catch_seen WHERE (bucket_ref, digest) IN
         (SELECT bucket_ref, digest FROM catch_seen WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
    ),
    forgetSeenOf: db.change<[bucketRef: number, rowsMax: number]>(
      `DELETE FROM catch_seen WHERE (bucket_ref, digest) IN
         (SELECT bucket_ref, digest FROM catch_seen WHERE bucket_ref = ? LIMIT ?)`,
    ),
  };
}
