import type { Database } from "../../../kernel/storage/database.ts";

/** A row of `flag_schedules`. */
export type ScheduleRow = {
  readonly ref: number;
  readonly flag_ref: number;
  readonly id: string;
  readonly account_ref: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** JSON of the fields of a save. */
  readonly change: string;
  /** JSON of an actor. */
  readonly actor: string;
  readonly error: string | null;
};

const COLUMNS = "ref, flag_ref, id, account_ref, at, change, actor, error";

export type ScheduleStore = ReturnType<typeof scheduleStore>;

/** All SQL of scheduled changes. */
export function scheduleStore(db: Database) {
  return {
    /** Those of a flag in the order of their times. */
    ofFlag: db.all<ScheduleRow, [flagRef: number]>(
      `SELECT ${COLUMNS} FROM flag_schedules WHERE flag_ref = ? ORDER BY at, ref`,
    ),
    insert: db.change<[row: Omit<ScheduleRow, "ref">]>(
      "INSERT INTO flag_schedules (flag_ref, id, account_ref, at, change, actor, error) VALUES ($flag_ref, $id, $account_ref, $at, $change, $actor, $error)",
    ),
    fail: db.change<[error: string, flagRef: number, id: string]>(
      "UPDATE flag_schedules SET error = ? WHERE flag_ref = ? AND id = ?",
    ),
    remove: db.change<[flagRef: number, id: string]>(
      "DELETE FROM flag_schedules WHERE flag_ref = ? AND id = ?",
    ),
    removeOfFlag: db.change<[flagRef: number]>("DELETE FROM flag_schedules WHERE flag_ref = ?"),
  };
}
