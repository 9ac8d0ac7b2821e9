import type { BulkRow } from "../../../kernel/background/bulk.ts";
import type { Database } from "../../../kernel/storage/database.ts";

export type ReplayRow = BulkRow & {
  readonly replay_id: string;
  readonly bucket_ref: number;
  /** JSON of its filters. */
  readonly filters: string;
  readonly matched: number;
  readonly more: number;
  readonly delivered: number;
  readonly failed: number;
  readonly invalid: number;
  readonly created_at: number;
};

export type ReplayStore = ReturnType<typeof replayStore>;

/** All SQL of bulk replays. */
export function replayStore(db: Database) {
  return {
    insert: db.change<[row: ReplayRow]>(
      `INSERT INTO catch_replays (bucket_ref, replay_id, status, filters, per_second, after_ref, through_ref, matched, more, resent,
       delivered, failed, invalid, error, created_at, finished_at) VALUES ($bucket_ref, $replay_id, $status, $filters, $per_second,
       $after_ref, $through_ref, $matched, $more, $resent, $delivered, $failed, $invalid, $error, $created_at, $finished_at)`,
    ),
    find: db.one<ReplayRow, [bucketRef: number, replayId: string]>(
      `SELECT replay_id, bucket_ref, status, filters, per_second, after_ref, through_ref, matched, more, resent, delivered, failed,
       invalid, error, created_at, finished_at FROM catch_replays WHERE bucket_ref = ? AND replay_id = ?`,
    ),
    running: db.number<[bucketRef: number]>(
      "SELECT count(*) AS n FROM catch_replays INDEXED BY catch_replays_running WHERE bucket_ref = ? AND finished_at IS NULL",
    ),
    update: db.change<[row: ReplayRow]>(
      `UPDATE catch_replays SET status = $status, after_ref = $after_ref, resent = $resent, delivered = $delivered, failed = $failed,
       error = $error, finished_at = $finished_at WHERE bucket_ref = $bucket_ref AND replay_id = $replay_id`,
    ),
    /** Removes the oldest finished replays of a bucket beyond the `storedMax` newest ones. */
    removeExcess: db.change<[bucketRef: number, storedMax: number]>(
      `DELETE FROM catch_replays WHERE bucket_ref = ?1 AND finished_at IS NOT NULL AND replay_id <= (SELECT replay_id
       FROM catch_replays WHERE bucket_ref = ?1 ORDER BY replay_id DESC LIMIT 1 OFFSET ?2)`,
    ),
    removeOld: db.change<[before: number, limit: number]>(
      "DELETE FROM catch_replays WHERE (bucket_ref, replay_id) IN (SELECT bucket_ref, replay_id FROM catch_replays WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
    ),
    removeOfBucket: db.change<[bucketRef: number, limit: number]>(
      "DELETE FROM catch_replays WHERE (bucket_ref, replay_id) IN (SELECT bucket_ref, replay_id FROM catch_replays WHERE bucket_ref = ? LIMIT ?)",
    ),
  };
}
