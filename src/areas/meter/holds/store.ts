import type { Database } from "../../../kernel/storage/database.ts";
import { HOLD_STATUSES, type HoldStatus } from "./schema.ts";

/** Totals of open holds. `first_end` is null without open holds. */
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

/** Returns the stored number of a status. */
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
    /** Totals of open holds that expire after a time. */
    openOf: db.one<OpenSums, [meterRef: number, time: number]>(
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
    /** Expires the open holds of a meter up to a time. */
    expire: db.change<[meterRef: number, time: number]>(
      "UPDATE meter_holds SET status = 4, ended_at = expires_at WHERE meter_ref = ? AND status = 1 AND expires_at <= ?",
    ),
    /** Meters with open holds that have expired. */
    expiredHolds: db.all<{ readonly meter_ref: number }, [now: number, limit: number]>(
      "SELECT meter_ref FROM meter_holds WHERE status = 1 AND expires_at <= ? LIMIT ?",
    ),
    /** Earliest expiry of an open hold; 0 if there is none. */
    firstExpiry: db.number("SELECT min(expires_at) AS n FROM meter_holds WHERE status = 1"),
    removeEnded: db.change<[before: number, limit: number]>(
      "DELETE FROM meter_holds WHERE ref IN (SELECT ref FROM meter_holds WHERE ended_at < ? LIMIT ?)",
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM meter_holds WHERE ref IN (SELECT ref FROM meter_holds WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
