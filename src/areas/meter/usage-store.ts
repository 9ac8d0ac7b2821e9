import type { Database } from "../../kernel/storage/database.ts";

/** Sums of an hour. */
export interface HourRow {
  readonly hour: number;
  readonly deducted: number;
  readonly refilled: number;
  readonly reset: number;
  readonly entries: number;
  readonly last_sequence: number;
  readonly balance: number;
}

/** What JSON carries exactly: sums end there. A thousand entries of that size add up within 64 bits, more may not. */
const MAX = Number.MAX_SAFE_INTEGER;
/** Kinds as they are stored: 1 deduct, 2 refill, 3 reset, 4 capture, 5 grant. Of a row, `balance_after` is that of max(sequence). */
const SUMS = `at / 3600000 AS hour,
  min(${MAX}, sum(CASE WHEN kind IN (1, 4) THEN -amount ELSE 0 END)) AS deducted,
  min(${MAX}, sum(CASE WHEN kind IN (2, 5) THEN amount ELSE 0 END)) AS refilled,
  max(-${MAX}, min(${MAX}, sum(CASE WHEN kind = 3 THEN amount ELSE 0 END))) AS reset,
  count(*) AS entries, max(sequence) AS last_sequence, balance_after AS balance`;
const COLUMNS = "deducted, refilled, reset, entries, last_sequence, balance";
const MERGE = `ON CONFLICT DO UPDATE SET
  deducted = min(${MAX}, deducted + excluded.deducted),
  refilled = min(${MAX}, refilled + excluded.refilled),
  reset = max(-${MAX}, min(${MAX}, reset + excluded.reset)),
  entries = entries + excluded.entries, last_sequence = excluded.last_sequence, balance = excluded.balance`;
const SLICE = "FROM meter_entries JOIN meters ON meters.ref = meter_ref WHERE sequence > ? AND sequence <= ?";
/** The name that files have for the last entry that the sums hold. */
const THROUGH = "meter_usage_through";

export type UsageStore = ReturnType<typeof usageStore>;

/** All SQL of the sums by hour. */
export function usageStore(db: Database) {
  return {
    through: db.number(`SELECT value AS n FROM settings WHERE name = '${THROUGH}'`),
    setThrough: db.change<[sequence: number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${THROUGH}', ?)`,
    ),
    /** The last of the next entries after one. */
    endOfSlice: db.number<[after: number, limit: number]>(
      "SELECT max(sequence) AS n FROM (SELECT sequence FROM meter_entries WHERE sequence > ? ORDER BY sequence LIMIT ?)",
    ),
    /** Whether there are more entries than so many after one. */
    isBehind: db.one<{ readonly found: number }, [after: number, entries: number]>(
      "SELECT 1 AS found FROM meter_entries WHERE sequence > ? ORDER BY sequence LIMIT 1 OFFSET ?",
    ),
    addMeters: db.change<[after: number, through: number]>(
      `INSERT INTO meter_usage (project_ref, meter_ref, hour, ${COLUMNS})
        SELECT * FROM (SELECT project_ref, meter_ref, ${SUMS} ${SLICE} GROUP BY project_ref, meter_ref, hour) WHERE true ${MERGE}`,
    ),
    addProjects: db.change<[after: number, through: number]>(
      `INSERT INTO meter_usage (project_ref, meter_ref, hour, ${COLUMNS})
        SELECT * FROM (SELECT project_ref, 0, ${SUMS} ${SLICE} GROUP BY project_ref, hour) WHERE true ${MERGE}`,
    ),
    /** `meterRef` 0: of the project. */
    hours: db.all<HourRow, [projectRef: number, meterRef: number, fromHour: number, toHour: number]>(
      `SELECT hour, ${COLUMNS} FROM meter_usage WHERE project_ref = ? AND meter_ref = ? AND hour >= ? AND hour < ? ORDER BY hour`,
    ),
    meterTail: db.all<HourRow, [after: number, meterRef: number]>(
      `SELECT ${SUMS} FROM meter_entries WHERE sequence > ? AND meter_ref = ? GROUP BY hour`,
    ),
    projectTail: db.all<HourRow, [after: number, projectRef: number]>(
      `SELECT ${SUMS} FROM meter_entries JOIN meters ON meters.ref = meter_ref WHERE sequence > ? AND project_ref = ? GROUP BY hour`,
    ),
    removeOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM meter_usage WHERE (project_ref, meter_ref, hour) IN (SELECT project_ref, meter_ref, hour FROM meter_usage WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
