import type { BulkRow } from "../../../kernel/bulk/bulk.ts";
import { bulkRows } from "../../../kernel/bulk/bulk-rows.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { BODY_LENGTH, type Filters, MATCHES } from "../deliveries/store.ts";

/** Filters of a bulk resend. */
export type ResendFilters = Filters & {
  /** References of the chosen deliveries, ascending; null for any. */
  readonly refs: readonly number[] | null;
  /** Deliveries that were finished later failed again after a resend. */
  readonly endedBy: number;
};

/** What a recovery sends, as it is stored. */
export interface RecoveryFilters {
  /** Reference of the endpoint. */
  readonly recover: number;
  /** Epoch milliseconds: times of messages, from the first to before the second. */
  readonly since: number;
  readonly until: number;
  /** The customer who started it with a portal link. */
  readonly startedBy?: string;
}

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

/** All SQL of bulk resends and of recoveries. */
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
    /** The number of runs that portal links have started since a time to recover an endpoint: few runs are stored. */
    recoveriesByPortal: db.number<[projectRef: number, since: number, endpointRef: number]>(
      `SELECT count(*) AS n FROM relay_resends WHERE project_ref = ? AND created_at > ? AND filters ->> '$.recover' = ?
       AND filters ->> '$.startedBy' IS NOT NULL`,
    ),
    /** A project's failed deliveries after a reference, oldest first. `matches`: 1 when the filters match. */
    failedAfter: db.all<
      { readonly ref: number; readonly matches: 0 | 1; readonly bytes: number },
      [walked: Walked]
    >(
      `SELECT ref, ifnull(failure IS NOT NULL AND finished_at <= $endedBy AND ${MATCHES}, 0) AS matches, ${BODY_LENGTH} AS bytes
       FROM relays WHERE project_ref = $projectRef AND status = 4 AND ref > $after ORDER BY ref LIMIT $limit`,
    ),
  };
}
