import type { BulkRow } from "../../../kernel/bulk/bulk.ts";
import { bulkRows } from "../../../kernel/bulk/bulk-rows.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { type Filters, MATCHES } from "../deliveries/store.ts";

/** Filters of a bulk resend. */
export type ResendFilters = Filters & {
  /** References of the chosen deliveries, ascending; null for any. */
  readonly refs: readonly number[] | null;
  /** Deliveries that were finished later failed again after a resend. */
  readonly endedBy: number;
};

export type ResendRow = BulkRow & {
  readonly resend_id: string;
  readonly accountRef: number;
  readonly projectRef: number;
};

type Walked = Omit<ResendFilters, "refs"> & {
  readonly projectRef: number;
  readonly after: number;
  readonly limit: number;
};

export type ResendStore = ReturnType<typeof resendStore>;

/** All SQL of bulk resends and of deduplication ids. */
export function resendStore(db: Database) {
  return {
    ...bulkRows(db, { table: "relay_resends", owner: "project_ref", id: "resend_id" }),
    insert: db.change<[row: ResendRow]>(
      `INSERT INTO relay_resends (project_ref, resend_id, account_ref, status, filters, per_second, after_ref, through_ref, matched,
       more, resent, error, created_at, finished_at) VALUES ($projectRef, $resend_id, $accountRef, $status, $filters, $per_second,
       $after_ref, $through_ref, $matched, $more, $resent, $error, $created_at, $finished_at)`,
    ),
    find: db.one<ResendRow, [projectRef: number, resendId: string]>(
      `SELECT resend_id, account_ref AS accountRef, project_ref AS projectRef, status, filters, per_second, after_ref, through_ref,
       matched, more, resent, error, created_at, finished_at FROM relay_resends WHERE project_ref = ? AND resend_id = ?`,
    ),
    update: db.change<[row: ResendRow]>(
      `UPDATE relay_resends SET status = $status, after_ref = $after_ref, resent = $resent, error = $error,
       finished_at = $finished_at WHERE project_ref = $projectRef AND resend_id = $resend_id`,
    ),
    /** The runs of a project that are not finished: few. */
    ofRunning: db.all<Pick<ResendRow, "resend_id" | "filters">, [projectRef: number]>(
      "SELECT resend_id, filters FROM relay_resends INDEXED BY relay_resends_running WHERE project_ref = ? AND finished_at IS NULL",
    ),
    /** A project's failed deliveries after a reference, oldest first. `matches`: 1 when the filters match. */
    failedAfter: db.all<{ readonly ref: number; readonly matches: 0 | 1 }, [walked: Walked]>(
      `SELECT ref, ifnull(failure IS NOT NULL AND finished_at <= $endedBy AND ${MATCHES}, 0) AS matches
       FROM relays WHERE project_ref = $projectRef AND status = 4 AND ref > $after ORDER BY ref LIMIT $limit`,
    ),
    /** The delivery created with an id after a time; 0 when there is none. */
    deduplicated: db.number<[projectRef: number, id: string, after: number]>(
      "SELECT relay_ref AS n FROM relay_deduplication WHERE project_ref = ? AND id = ? AND created_at > ?",
    ),
    noteDeduplication: db.change<[projectRef: number, id: string, relayRef: number, now: number]>(
      "INSERT OR REPLACE INTO relay_deduplication (project_ref, id, relay_ref, created_at) VALUES (?, ?, ?, ?)",
    ),
    removeOldDeduplication: db.change<[before: number, limit: number]>(
      "DELETE FROM relay_deduplication WHERE (project_ref, id) IN (SELECT project_ref, id FROM relay_deduplication WHERE created_at < ? ORDER BY created_at LIMIT ?)",
    ),
    removeDeduplicationOf: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM relay_deduplication WHERE (project_ref, id) IN (SELECT project_ref, id FROM relay_deduplication WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
