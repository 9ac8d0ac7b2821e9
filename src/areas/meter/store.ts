import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { HOLD_STATUSES, type HoldStatus, PERIODS, PLAN_MODES, type Plan } from "./domain.ts";

/** A row of `meters`. */
export interface MeterRow {
  ref: number;
  balance: number;
  last_sequence: number;
  /** 1 if there may be holds, a plan or an alert of the meter. */
  has_extras: number;
}

/** Project and id of a meter. */
export interface MeterLocation {
  readonly project_ref: number;
  readonly meter_id: string;
}

/** A row of `meter_entries`. */
export interface MeterEntryRow {
  sequence: number;
  meter_ref: number;
  previous: number;
  kind: number;
  amount: number;
  balance_after: number;
  at: number;
  /** Empty for entries without a request. */
  request_id: Uint8Array;
  hold_id: string | null;
}

/** Setting with the last entry that all rows include. */
const FLUSHED_THROUGH = "meter_settled_through";

export type MeterStore = ReturnType<typeof meterStore>;

/** All SQL of tenant meters, with their ledger, holds, plans and usage. */
export function meterStore(db: Database) {
  return {
    holds: holdStore(db),
    plans: planStore(db),
    usage: usageStore(db),
    find: db.lookUp<MeterRow, [projectRef: number, meterId: string]>(
      "SELECT ref, balance, last_sequence, has_extras FROM meters WHERE project_ref = ? AND meter_id = ?",
    ),
    someOfProject: db.all<MeterRow & { meter_id: string }, [projectRef: number, limit: number]>(
      "SELECT ref, balance, last_sequence, has_extras, meter_id FROM meters WHERE project_ref = ? LIMIT ?",
    ),
    countTo: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM meters WHERE project_ref = ? LIMIT ?)",
    ),
    /** A project's meters by id, from `from` to before `before`. */
    idsBetween: db.all<
      { readonly meter_id: string },
      [projectRef: number, from: string, before: string, limit: number]
    >(
      "SELECT meter_id FROM meters WHERE project_ref = ? AND meter_id >= ? AND meter_id < ? ORDER BY meter_id LIMIT ?",
    ),
    place: db.one<MeterLocation, [ref: number]>("SELECT project_ref, meter_id FROM meters WHERE ref = ?"),
    hasExtras: db.number<[ref: number]>("SELECT has_extras AS n FROM meters WHERE ref = ?"),
    setExtras: db.change<[ref: number]>("UPDATE meters SET has_extras = 1 WHERE ref = ?"),
    highestRef: db.number("SELECT max(ref) AS n FROM meters"),
    insert: db.change<[ref: number, projectRef: number, meterId: string]>(
      "INSERT INTO meters (ref, project_ref, meter_id, balance, last_sequence) VALUES (?, ?, ?, 0, 0)",
    ),
    saveBalance: db.change<[balance: number, lastSequence: number, ref: number]>(
      "UPDATE meters SET balance = ?, last_sequence = ? WHERE ref = ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM meters WHERE ref = ?"),
    entry: db.one<MeterEntryRow, [sequence: number]>(
      "SELECT meter_ref, previous, sequence, kind, amount, balance_after, at, request_id, hold_id FROM meter_entries WHERE sequence = ?",
    ),
    /** Oldest first. */
    entriesAfter: db.all<Pick<MeterEntryRow, "sequence" | "meter_ref" | "balance_after">, [sequence: number]>(
      "SELECT sequence, meter_ref, balance_after FROM meter_entries WHERE sequence > ? ORDER BY sequence",
    ),
    highestSequence: db.number("SELECT max(sequence) AS n FROM meter_entries"),
    // Hot path: positional parameters are faster than named ones.
    append: db.change<
      [
        sequence: number,
        meterRef: number,
        previous: number,
        kind: number,
        amount: number,
        balanceAfter: number,
        at: number,
        requestId: Uint8Array,
      ]
    >(
      "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    appendCapture: db.change<[row: Readonly<Omit<MeterEntryRow, "kind">>]>(
      "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id, hold_id) VALUES ($sequence, $meter_ref, $previous, 4, $amount, $balance_after, $at, $request_id, $hold_id)",
    ),
    removeEntry: db.change<[sequence: number]>("DELETE FROM meter_entries WHERE sequence = ?"),
    /** All rows include the entries up to this sequence. */
    flushedThrough: db.number(`SELECT value AS n FROM settings WHERE name = '${FLUSHED_THROUGH}'`),
    setFlushedThrough: db.change<[sequence: number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FLUSHED_THROUGH}', ?)`,
    ),
  };
}

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

const HOLD_COLUMNS =
  "ref, project_ref, meter_ref, hold_id, status, requested, at_most, amount, captured, asked, shortfall, created_at, expires_at, ended_at, metadata, captures";

export type HoldStore = ReturnType<typeof holdStore>;

/** All SQL of holds. */
function holdStore(db: Database) {
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM meter_holds"),
    /** Totals of open holds that expire after a time. */
    openOf: db.one<OpenSums, [meterRef: number, time: number]>(
      "SELECT coalesce(sum(amount), 0) AS held, count(*) AS open, min(expires_at) AS first_end FROM meter_holds WHERE meter_ref = ? AND status = 1 AND expires_at > ?",
    ),
    find: db.one<HoldRow, [projectRef: number, holdId: string]>(
      `SELECT ${HOLD_COLUMNS} FROM meter_holds WHERE project_ref = ? AND hold_id = ?`,
    ),
    /** Newest first. */
    page: db.all<HoldRow, [meterRef: number, status: number, before: number, limit: number]>(
      `SELECT ${HOLD_COLUMNS} FROM meter_holds WHERE meter_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    insert: db.change<[row: HoldRow]>(
      `INSERT INTO meter_holds (${HOLD_COLUMNS}) VALUES ($ref, $project_ref, $meter_ref, $hold_id, $status, $requested, $at_most, $amount, $captured, $asked, $shortfall, $created_at, $expires_at, $ended_at, $metadata, $captures)`,
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

/** A row of `meter_plans`, without its meter. */
export type PlanRow = {
  readonly amount: number;
  readonly every: number;
  readonly mode: number;
  readonly day: number | null;
  readonly carry_max: number | null;
  readonly next_at: number;
};

/** A row of `meter_alerts`, without its meter. */
export interface AlertRow {
  readonly account_ref: number;
  readonly threshold: number;
  readonly webhook_url: string;
}

export type PlanStore = ReturnType<typeof planStore>;

/** All SQL of refill plans and alerts. */
function planStore(db: Database) {
  return {
    plan: db.one<PlanRow, [meterRef: number]>(
      "SELECT amount, every, mode, day, carry_max, next_at FROM meter_plans WHERE meter_ref = ?",
    ),
    setPlan: db.change<[row: PlanRow & { readonly meter_ref: number }]>(
      "INSERT OR REPLACE INTO meter_plans (meter_ref, amount, every, mode, day, carry_max, next_at) VALUES ($meter_ref, $amount, $every, $mode, $day, $carry_max, $next_at)",
    ),
    postponePlan: db.change<[nextAt: number, meterRef: number]>(
      "UPDATE meter_plans SET next_at = ? WHERE meter_ref = ?",
    ),
    removePlan: db.change<[meterRef: number]>("DELETE FROM meter_plans WHERE meter_ref = ?"),
    /** Meters with due plans. */
    plansDue: db.all<{ readonly meter_ref: number }, [now: number, limit: number]>(
      "SELECT meter_ref FROM meter_plans WHERE next_at <= ? LIMIT ?",
    ),
    /** Due time of the first plan; 0 if there is none. */
    firstPlan: db.number("SELECT min(next_at) AS n FROM meter_plans"),
    /** `meterRef` 0 is the project's alert. */
    alert: db.one<AlertRow, [projectRef: number, meterRef: number]>(
      "SELECT account_ref, threshold, webhook_url FROM meter_alerts WHERE project_ref = ? AND meter_ref = ?",
    ),
    projectAlerts: db.all<{ readonly project_ref: number; readonly threshold: number }>(
      "SELECT project_ref, threshold FROM meter_alerts WHERE meter_ref = 0",
    ),
    setAlert: db.change<
      [projectRef: number, meterRef: number, accountRef: number, threshold: number, webhookUrl: string]
    >(
      "INSERT OR REPLACE INTO meter_alerts (project_ref, meter_ref, account_ref, threshold, webhook_url) VALUES (?, ?, ?, ?, ?)",
    ),
    removeAlert: db.change<[projectRef: number, meterRef: number]>(
      "DELETE FROM meter_alerts WHERE project_ref = ? AND meter_ref = ?",
    ),
  };
}

/** Converts a row to a plan. */
export function planOfRow({ every, mode, carry_max: carryMax, next_at: nextAt, ...row }: PlanRow): Plan {
  const period = PERIODS[every - 1] ?? "month";
  return { ...row, every: period, mode: PLAN_MODES[mode - 1] ?? "raise", carryMax, nextAt };
}

/** Converts a plan to a row. */
export function rowOfPlan({ every, mode, carryMax: carry_max, nextAt: next_at, ...plan }: Plan): PlanRow {
  const numbers = { every: PERIODS.indexOf(every) + 1, mode: PLAN_MODES.indexOf(mode) + 1 };
  return { ...plan, ...numbers, carry_max, next_at };
}

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
const SUM_MAX = Number.MAX_SAFE_INTEGER;
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
        deducted = min(${SUM_MAX}, deducted + excluded.deducted),
        refilled = min(${SUM_MAX}, refilled + excluded.refilled),
        reset = max(-${SUM_MAX}, min(${SUM_MAX}, reset + excluded.reset)),
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
