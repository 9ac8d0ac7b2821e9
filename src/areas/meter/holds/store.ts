import type { Database } from "../../../kernel/storage/database.ts";
import { HOLD_STATUSES, type HoldStatus } from "./schema.ts";

/** Holds that are open and over a moment. `first_end` null: there is none. */
interface OpenSums {
  readonly held: number;
  readonly open: number;
  readonly first_end: number | null;
}

/** A row of `meter_holds`. */
export type HoldRow = {
  readonly ref: number;
  readonly project_ref: number;
  readonly meter_ref: number;
  readonly hold_id: string;
  readonly status: number;
  readonly requested: number;
  readonly at_most: number;
  readonly amount: number;
  readonly captured: number;
  readonly asked: number | null;
  readonly shortfall: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly ended_at: number | null;
  readonly metadata: string | null;
  /** Captures that left the hold open. */
  readonly captures: number;
};

/** The number that files have for a status. */
export function holdStatus(status: HoldStatus): number {
  return HOLD_STATUSES.indexOf(status) + 1;
}

const COLUMNS =
  "ref, project_ref, meter_ref, hold_id, status, requested, at_most, amount, captured, asked, shortfall, created_at, expires_at, ended_at, metadata, captures";

export type HoldStore = ReturnType<typeof holdStore>;

/** All SQL of holds. */
export function holdStore(db: Database) {
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM meter_holds"),
    /** Of those that are not over at a moment. */
    openOf: db.one<OpenSums, [meterRef: number, moment: number]>(
      "SELECT coalesce(sum(amount), 0) AS held, count(*) AS open, min(expires_at) AS first_end FROM meter_holds WHERE meter_ref = ? AND status = 1 AND expires_at > ?",
    ),
    find: db.one<HoldRow, [projectRef: number, holdId: string]>(
      `SELECT ${COLUMNS} FROM meter_holds WHERE project_ref = ? AND hold_id = ?`,
    ),
    /** Newest first. */
    page: db.all<HoldRow, [meterRef: number, status: number, before: number, limit: number]>(
      `SELECT ${COLUMNS} FROM meter_holds WHERE meter_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    insert: db.change<[row: HoldRow]>(
      `INSERT INTO meter_holds (${COLUMNS}) VALUES ($ref, $project_ref, $meter_ref, $hold_id, $status, $requested, $at_most, $amount, $captured, $asked, $shortfall, $created_at, $expires_at, $ended_at, $metadata, $captures)`,
    ),
    update: db.change<
      [
        row: Pick<
          HoldRow,
          | "ref"
          | "status"
          | "amount"
          | "captured"
          | "asked"
          | "shortfall"
          | "expires_at"
          | "ended_at"
          | "captures"
        >,
      ]
    >(
      "UPDATE meter_holds SET status = $status, amount = $amount, captured = $captured, asked = $asked, shortfall = $shortfall, expires_at = $expires_at, ended_at = $ended_at, captures = $captures WHERE ref = $ref",
    ),
    /** Ends those of a meter that are over at a moment. */
    end: db.change<[meterRef: number, moment: number]>(
      "UPDATE meter_holds SET status = 4, ended_at = expires_at WHERE meter_ref = ? AND status = 1 AND expires_at <= ?",
    ),
    /** The meters of open holds that are over. */
    overBy: db.all<{ readonly meter_ref: number }, [now: number, limit: number]>(
      "SELECT meter_ref FROM meter_holds WHERE status = 1 AND expires_at <= ? LIMIT ?",
    ),
    /** When the first open hold ends; 0 where there is none. */
    firstEnd: db.number("SELECT min(expires_at) AS n FROM meter_holds WHERE status = 1"),
    removeEnded: db.change<[before: number, limit: number]>(
      "DELETE FROM meter_holds WHERE ref IN (SELECT ref FROM meter_holds WHERE ended_at < ? LIMIT ?)",
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM meter_holds WHERE ref IN (SELECT ref FROM meter_holds WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
