import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `meters`. */
export interface MeterRow {
  ref: number;
  balance: number;
  last_sequence: number;
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
  request_id: Uint8Array;
}

/** The name that files have for the last entry that every row holds. */
const FLUSHED_THROUGH = "meter_settled_through";

/** All SQL of tenant meters and their ledger. */
export class MeterStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = {
      meter: db.query<MeterRow, [number, string]>(
        "SELECT ref, balance, last_sequence FROM meters WHERE project_ref = ? AND meter_id = ?",
      ),
      metersOfProject: db.query<MeterRow & { meter_id: string }, [number, number]>(
        "SELECT ref, balance, last_sequence, meter_id FROM meters WHERE project_ref = ? LIMIT ?",
      ),
      countOfProject: db.query<{ value: number }, [number]>(
        "SELECT count(*) AS value FROM meters WHERE project_ref = ?",
      ),
      highestRef: db.query<{ value: number | null }>("SELECT max(ref) AS value FROM meters"),
      insertMeter: db.command<[number, number, string]>(
        "INSERT INTO meters (ref, project_ref, meter_id, balance, last_sequence) VALUES (?, ?, ?, 0, 0)",
      ),
      updateMeter: db.command<[number, number, number]>(
        "UPDATE meters SET balance = ?, last_sequence = ? WHERE ref = ?",
      ),
      deleteMeter: db.command<[number]>("DELETE FROM meters WHERE ref = ?"),
      entry: db.query<MeterEntryRow, [number]>(
        "SELECT sequence, meter_ref, previous, kind, amount, balance_after, at, request_id FROM meter_entries WHERE sequence = ?",
      ),
      entriesAfter: db.query<Pick<MeterEntryRow, "sequence" | "meter_ref" | "balance_after">, [number]>(
        "SELECT sequence, meter_ref, balance_after FROM meter_entries WHERE sequence > ? ORDER BY sequence",
      ),
      highestSequence: db.query<{ value: number | null }>("SELECT max(sequence) AS value FROM meter_entries"),
      // Every change runs it: positions are bound quicker than names.
      insertEntry: db.command<[number, number, number, number, number, number, number, Uint8Array]>(
        "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      ),
      deleteEntry: db.command<[number]>("DELETE FROM meter_entries WHERE sequence = ?"),
      flushedThrough: db.query<{ value: number }>(
        `SELECT value FROM settings WHERE name = '${FLUSHED_THROUGH}'`,
      ),
      saveFlushedThrough: db.command<[number]>(
        `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FLUSHED_THROUGH}', ?)`,
      ),
    };
  }

  find(projectRef: number, meterId: string): MeterRow | null {
    return this.sql.meter.get(projectRef, meterId);
  }

  /** Some meters of a project. */
  ofProject(projectRef: number, limit: number): (MeterRow & { meter_id: string })[] {
    return this.sql.metersOfProject.all(projectRef, limit);
  }

  count(projectRef: number): number {
    return this.sql.countOfProject.get(projectRef)?.value ?? 0;
  }

  highestRef(): number {
    return this.sql.highestRef.get()?.value ?? 0;
  }

  insert(tx: Tx, ref: number, projectRef: number, meterId: string): void {
    this.sql.insertMeter.run(tx, ref, projectRef, meterId);
  }

  saveBalance(tx: Tx, ref: number, balance: number, lastSequence: number): void {
    this.sql.updateMeter.run(tx, balance, lastSequence, ref);
  }

  remove(tx: Tx, ref: number): void {
    this.sql.deleteMeter.run(tx, ref);
  }

  entry(sequence: number): MeterEntryRow | null {
    return this.sql.entry.get(sequence);
  }

  /** Entries after a sequence, oldest first. */
  entriesAfter(sequence: number): Pick<MeterEntryRow, "sequence" | "meter_ref" | "balance_after">[] {
    return this.sql.entriesAfter.all(sequence);
  }

  highestSequence(): number {
    return this.sql.highestSequence.get()?.value ?? 0;
  }

  append(tx: Tx, entry: MeterEntryRow): void {
    const { sequence, meter_ref, previous, kind, amount, balance_after, at, request_id } = entry;
    this.sql.insertEntry.run(tx, sequence, meter_ref, previous, kind, amount, balance_after, at, request_id);
  }

  removeEntry(tx: Tx, sequence: number): void {
    this.sql.deleteEntry.run(tx, sequence);
  }

  /** Every meter's row holds at least its entries up to this sequence. */
  flushedThrough(): number {
    return this.sql.flushedThrough.get()?.value ?? 0;
  }

  setFlushedThrough(tx: Tx, sequence: number): void {
    this.sql.saveFlushedThrough.run(tx, sequence);
  }
}
