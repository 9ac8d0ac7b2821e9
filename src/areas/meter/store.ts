import type { Database } from "../../kernel/storage/database.ts";
import { holdStore } from "./holds/store.ts";
import { planStore } from "./plans/store.ts";
import { usageStore } from "./usage/store.ts";

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
