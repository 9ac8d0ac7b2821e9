import type { BulkRow } from "../../../kernel/bulk/bulk.ts";
import { bulkRows } from "../../../kernel/bulk/bulk-rows.ts";
import type { Database } from "../../../kernel/storage/database.ts";

export type ReplayRow = BulkRow & {
  readonly replay_id: string;
  readonly bucket_ref: number;
  readonly delivered: number;
  readonly failed: number;
  /** Events with new deliveries to endpoints. */
  readonly queued: number;
  readonly invalid: number;
};

export type ReplayStore = ReturnType<typeof replayStore>;

/** All SQL of bulk replays. */
export function replayStore(db: Database) {
  return {
    ...bulkRows(db, { table: "catch_replays", owner: "bucket_ref", id: "replay_id" }),
    insert: db.change<[row: ReplayRow]>(
      `INSERT INTO catch_replays (bucket_ref, replay_id, status, filters, per_second, after_ref, through_ref, matched, more, resent,
       delivered, failed, queued, invalid, error, created_at, finished_at) VALUES ($bucket_ref, $replay_id, $status, $filters, $per_second,
       $after_ref, $through_ref, $matched, $more, $resent, $delivered, $failed, $queued, $invalid, $error, $created_at, $finished_at)`,
    ),
    find: db.one<ReplayRow, [bucketRef: number, replayId: string]>(
      `SELECT replay_id, bucket_ref, status, filters, per_second, after_ref, through_ref, matched, more, resent, delivered, failed,
       queued, invalid, error, created_at, finished_at FROM catch_replays WHERE bucket_ref = ? AND replay_id = ?`,
    ),
    update: db.change<[row: ReplayRow]>(
      `UPDATE catch_replays SET status = $status, after_ref = $after_ref, resent = $resent, delivered = $delivered, failed = $failed, queued = $queued,
       error = $error, finished_at = $finished_at WHERE bucket_ref = $bucket_ref AND replay_id = $replay_id`,
    ),
  };
}
