import type { Database } from "../../kernel/storage/database.ts";

/** Stored bytes of an id's SHA-256: enough to avoid collisions. */
const DIGEST_BYTES = 16;

/** The digest of a sender's id. */
export function digestOfId(providerEventId: string): Uint8Array {
  return Bun.CryptoHasher.hash("sha256", providerEventId).subarray(0, DIGEST_BYTES);
}

/** The digest of a token that a sender uses for one body only. No id of an event has this form. */
export function tokenDigest(token: string): Uint8Array {
  return digestOfId(`\0token:${token}`);
}

/** The digest of such a token with the SHA-256 (hex) of the body that it was used for. */
export function bodyOfTokenDigest(token: string, sha256: string): Uint8Array {
  return digestOfId(`\0token:${token}:${sha256}`);
}

/** The sender's id of an event, by its digest. */
interface DeduplicationRow {
  readonly bucket_ref: number;
  readonly digest: Uint8Array;
  readonly sequence: number;
  readonly expires_at: number;
}

/** Received events of a bucket by the sender's ids. */
export function deduplicationStore(db: Database) {
  return {
    findReceived: db.one<
      Pick<DeduplicationRow, "sequence">,
      [bucketRef: number, digest: Uint8Array, now: number]
    >("SELECT sequence FROM catch_seen WHERE bucket_ref = ? AND digest = ? AND expires_at > ?"),
    /** Replaces an expired id. */
    addReceivedId: db.change<[{ [Name in keyof DeduplicationRow]: DeduplicationRow[Name] }]>(
      `INSERT INTO catch_seen (bucket_ref, digest, sequence, expires_at) VALUES ($bucket_ref, $digest, $sequence, $expires_at)
       ON CONFLICT DO UPDATE SET sequence = excluded.sequence, expires_at = excluded.expires_at`,
    ),
    /** Forgets the id of an event, so that it is accepted again. */
    removeReceivedId: db.change<[bucketRef: number, digest: Uint8Array, sequence: number]>(
      "DELETE FROM catch_seen WHERE bucket_ref = ? AND digest = ? AND sequence = ?",
    ),
    addDuplicate: db.change<[bucketRef: number, sequence: number]>(
      "UPDATE catch_events SET duplicates = duplicates + 1 WHERE bucket_ref = ? AND sequence = ?",
    ),
    removeExpiredIds: db.change<[now: number, rowsMax: number]>(
      `DELETE FROM catch_seen WHERE (bucket_ref, digest) IN
         (SELECT bucket_ref, digest FROM catch_seen WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
    ),
    removeIdsOfBucket: db.change<[bucketRef: number, rowsMax: number]>(
      `DELETE FROM catch_seen WHERE (bucket_ref, digest) IN
         (SELECT bucket_ref, digest FROM catch_seen WHERE bucket_ref = ? LIMIT ?)`,
    ),
  };
}
