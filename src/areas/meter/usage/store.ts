import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";

/** Sums of an hour. */
export interface HourRow {
  /** Hours since 1970. */
  readonly hour: number;
  deducted: number;
  refilled: number;
  /** Signed. */
  reset: number;
  entries: number;
  /** Last included entry. */
  last_sequence: number;
  /** Balance after that entry. */
  balance: number;
}

/** Sums of an hour of a meter; `meter_ref` 0: of all meters of the project. */
export interface UsageRow extends HourRow {
  readonly project_ref: number;
  readonly meter_ref: number;
}

/** The columns of entries that sums need. */
export interface UsageEntry {
  readonly sequence: number;
  readonly project_ref: number;
  readonly meter_ref: number;
  readonly kind: number;
  readonly amount: number;
  readonly balance_after: number;
  readonly at: number;
}

/** Sums are limited to the integers that JSON represents exactly. */
const MAX = Number.MAX_SAFE_INTEGER;
const SUMS = "deducted, refilled, reset, entries, last_sequence, balance";
const ENTRIES =
  "SELECT sequence, project_ref, meter_ref, kind, amount, balance_after, at FROM meter_entries JOIN meters ON meters.ref = meter_ref";
/** Settings with the last entry of the completed round and of the started one. */
const THROUGH = "meter_usage_through";
const BEGUN = "meter_usage_begun";

export type UsageStore = ReturnType<typeof usageStore>;

/** All SQL of the sums by hour. */
export function usageStore(db: Database) {
  const setting = (name: string) => db.number(`SELECT value AS n FROM settings WHERE name = '${name}'`);
  const setSetting = (name: string) =>
    db.change<[sequence: number]>(`INSERT OR REPLACE INTO settings (name, value) VALUES ('${name}', ?)`);
  // Positional: it runs for nearly every change of a meter, and named parameters are slower.
  const add = db.change<
    [
      projectRef: number,
      meterRef: number,
      hour: number,
      deducted: number,
      refilled: number,
      reset: number,
      entries: number,
      lastSequence: number,
      balance: number,
    ]
  >(
    `INSERT INTO meter_usage (project_ref, meter_ref, hour, ${SUMS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET
        deducted = min(${MAX}, deducted + excluded.deducted),
        refilled = min(${MAX}, refilled + excluded.refilled),
        reset = max(-${MAX}, min(${MAX}, reset + excluded.reset)),
        entries = entries + excluded.entries, last_sequence = excluded.last_sequence, balance = excluded.balance
      WHERE excluded.last_sequence > last_sequence`,
  );
  return {
    /** The sums include all entries up to this one. */
    through: setting(THROUGH),
    setThrough: setSetting(THROUGH),
    /** Some of the sums hold the entries up to this one. */
    begun: setting(BEGUN),
    setBegun: setSetting(BEGUN),
    highestSequence: db.number("SELECT max(sequence) AS n FROM meter_entries"),
    between: db.all<UsageEntry, [after: number, through: number]>(
      `${ENTRIES} WHERE sequence > ? AND sequence <= ? ORDER BY sequence`,
    ),
    ofMeterAfter: db.all<UsageEntry, [sequence: number, meterRef: number]>(
      `${ENTRIES} WHERE sequence > ? AND meter_ref = ? ORDER BY sequence`,
    ),
    ofProjectAfter: db.all<UsageEntry, [sequence: number, projectRef: number]>(
      `${ENTRIES} WHERE sequence > ? AND project_ref = ? ORDER BY sequence`,
    ),
    /** 1 if a project has meters, otherwise 0. */
    hasMeters: db.number<[projectRef: number]>(
      "SELECT EXISTS (SELECT 1 FROM meters WHERE project_ref = ?) AS n",
    ),
    /** Adds sums, unless the row already has them: a round that was interrupted is repeated unchanged. */
    add: (tx: Tx, row: UsageRow) =>
      add(
        tx,
        row.project_ref,
        row.meter_ref,
        row.hour,
        row.deducted,
        row.refilled,
        row.reset,
        row.entries,
        row.last_sequence,
        row.balance,
      ),
    hours: db.all<HourRow, [projectRef: number, meterRef: number, fromHour: number, toHour: number]>(
      `SELECT hour, ${SUMS} FROM meter_usage WHERE project_ref = ? AND meter_ref = ? AND hour >= ? AND hour < ? ORDER BY hour`,
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM meter_usage WHERE (project_ref, meter_ref, hour) IN (SELECT project_ref, meter_ref, hour FROM meter_usage WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
