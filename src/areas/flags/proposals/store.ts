import type { Database } from "../../../kernel/storage/database.ts";
import type { ProposalStatus } from "./schema.ts";

/** A row of `flag_proposals`. */
export type ProposalRow = {
  readonly ref: number;
  readonly id: string;
  readonly project_ref: number;
  readonly flag_key: string;
  readonly status: ProposalStatus;
  readonly base_version: number | null;
  /** JSON of the fields of a save; null to delete the flag. */
  readonly change: string | null;
  /** JSON of the changed fields. */
  readonly was: string | null;
  readonly became: string | null;
  readonly comment: string | null;
  readonly proposer: string;
  /** JSON of an actor. */
  readonly proposed_by: string;
  readonly decided_by: string | null;
  readonly decision_comment: string | null;
  readonly created_at: number;
  readonly decided_at: number | null;
};

type Decision = Pick<ProposalRow, "ref" | "status" | "decided_by" | "decision_comment" | "decided_at">;

const COLUMNS =
  "ref, id, project_ref, flag_key, status, base_version, change, was, became, comment, proposer, proposed_by, decided_by, decision_comment, created_at, decided_at";
/** Without the change, which a page does not show: it is as long as the changed fields. */
const SHOWN = COLUMNS.replace(" change,", " NULL AS change,");
const PAGE = "AND ref < $before AND ($status IS NULL OR status = $status) ORDER BY ref DESC LIMIT $rowsMax";

/** A page: before this row, newest first. */
type Page = { readonly before: number; readonly status: ProposalStatus | null; readonly rowsMax: number };

export type ProposalStore = ReturnType<typeof proposalStore>;

/** All SQL of proposals. */
export function proposalStore(db: Database) {
  return {
    insert: db.change<[row: Omit<ProposalRow, "ref">]>(
      `INSERT INTO flag_proposals (${COLUMNS.slice("ref, ".length)}) VALUES ($id, $project_ref, $flag_key, $status, $base_version, $change, $was, $became, $comment, $proposer, $proposed_by, $decided_by, $decision_comment, $created_at, $decided_at)`,
    ),
    find: db.one<ProposalRow, [projectRef: number, flagKey: string, id: string]>(
      `SELECT ${COLUMNS} FROM flag_proposals WHERE project_ref = ? AND flag_key = ? AND id = ?`,
    ),
    ofFlag: db.all<ProposalRow, [page: Page & { readonly projectRef: number; readonly flagKey: string }]>(
      `SELECT ${SHOWN} FROM flag_proposals WHERE project_ref = $projectRef AND flag_key = $flagKey ${PAGE}`,
    ),
    ofProject: db.all<ProposalRow, [page: Page & { readonly projectRef: number }]>(
      `SELECT ${SHOWN} FROM flag_proposals WHERE project_ref = $projectRef ${PAGE}`,
    ),
    openOfFlag: db.all<ProposalRow, [projectRef: number, flagKey: string]>(
      `SELECT ${COLUMNS} FROM flag_proposals WHERE project_ref = ? AND flag_key = ? AND status = 'open'`,
    ),
    openCount: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM flag_proposals WHERE project_ref = ? AND status = 'open'",
    ),
    /** Bytes of the open proposals of a project. */
    openBytes: db.number<[projectRef: number]>(
      `SELECT coalesce(sum(coalesce(octet_length(change), 0) + coalesce(octet_length(was), 0) + coalesce(octet_length(became), 0)), 0) AS n
       FROM flag_proposals WHERE project_ref = ? AND status = 'open'`,
    ),
    /** All proposals of a project, decided ones included. */
    count: db.number<[projectRef: number]>("SELECT count(*) AS n FROM flag_proposals WHERE project_ref = ?"),
    removeOldestDecided: db.change<[projectRef: number]>(
      "DELETE FROM flag_proposals WHERE ref = (SELECT ref FROM flag_proposals WHERE project_ref = ? AND status <> 'open' ORDER BY ref LIMIT 1)",
    ),
    decide: db.change<[decision: Decision]>(
      "UPDATE flag_proposals SET status = $status, decided_by = $decided_by, decision_comment = $decision_comment, decided_at = $decided_at WHERE ref = $ref",
    ),
    /** The open proposals of a flag that has changed. */
    outdate: db.change<[projectRef: number, flagKey: string]>(
      "UPDATE flag_proposals SET status = 'outdated' WHERE project_ref = ? AND flag_key = ? AND status = 'open'",
    ),
    removeOfProject: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM flag_proposals WHERE ref IN (SELECT ref FROM flag_proposals WHERE project_ref = ? LIMIT ?)",
    ),
    purge: db.change<[before: number, rowsMax: number]>(
      "DELETE FROM flag_proposals WHERE ref IN (SELECT ref FROM flag_proposals WHERE created_at < ? LIMIT ?)",
    ),
  };
}
