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
  previous: number;
  kind: number;
  amount: number;
  balance_after: number;
  at: number;
  request_id: Uint8Array;
}

/** An entry that no settlement has reached yet. */
export interface UnsettledEntry {
  sequence: number;
  meter_ref: number;
  balance_after: number;
}

const SETTLED_THROUGH = "meter_settled_through";

/** All SQL of tenant meters and their ledger. */
export class MeterStore {
  private readonly byName;
  private readonly byRef;
  private readonly insertMeter;
  private readonly updateMeter;
  private readonly insertEntry;
  private readonly entryBySequence;
  private readonly entriesAfter;
  private readonly settled;
  private readonly saveSettled;
  private readonly byProject;
  private readonly countByProject;
  private readonly deleteMeter;
  private readonly deleteEntry;
  private readonly highestMeter;
  private readonly highestEntry;

  constructor(db: Database) {
    this.byName = db.query<MeterRow, [number, string]>(
      "SELECT ref, balance, last_sequence FROM meters WHERE project_ref = ? AND meter_id = ?",
    );
    this.byRef = db.query<MeterRow & { project_ref: number; meter_id: string }, [number]>(
      "SELECT ref, balance, last_sequence, project_ref, meter_id FROM meters WHERE ref = ?",
    );
    this.insertMeter = db.command<[number, number, string]>(
      "INSERT INTO meters (ref, project_ref, meter_id, balance, last_sequence) VALUES (?, ?, ?, 0, 0)",
    );
    this.updateMeter = db.command<[number, number, number]>(
      "UPDATE meters SET balance = ?, last_sequence = ? WHERE ref = ?",
    );
    this.insertEntry = db.command<[number, number, number, number, number, number, number, Uint8Array]>(
      "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.entryBySequence = db.query<MeterEntryRow & { meter_ref: number }, [number]>(
      "SELECT sequence, meter_ref, previous, kind, amount, balance_after, at, request_id FROM meter_entries WHERE sequence = ?",
    );
    this.entriesAfter = db.query<UnsettledEntry, [number]>(
      "SELECT sequence, meter_ref, balance_after FROM meter_entries WHERE sequence > ? ORDER BY sequence",
    );
    this.settled = db.query<{ value: number }>(
      `SELECT value FROM settings WHERE name = '${SETTLED_THROUGH}'`,
    );
    this.saveSettled = db.command<[number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${SETTLED_THROUGH}', ?)`,
    );
    this.byProject = db.query<MeterRow & { meter_id: string }, [number, number]>(
      "SELECT ref, balance, last_sequence, meter_id FROM meters WHERE project_ref = ? LIMIT ?",
    );
    this.countByProject = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM meters WHERE project_ref = ?",
    );
    this.deleteMeter = db.command<[number]>("DELETE FROM meters WHERE ref = ?");
    this.deleteEntry = db.command<[number]>("DELETE FROM meter_entries WHERE sequence = ?");
    this.highestMeter = db.query<{ value: number | null }>("SELECT max(ref) AS value FROM meters");
    this.highestEntry = db.query<{ value: number | null }>(
      "SELECT max(sequence) AS value FROM meter_entries",
    );
  }

  find(projectRef: number, meterId: string): MeterRow | null {
    return this.byName.get(projectRef, meterId);
  }

  /** The meter of a reference, with its name. */
  named(ref: number): (MeterRow & { project_ref: number; meter_id: string }) | null {
    return this.byRef.get(ref);
  }

  /** Some meters of a project. */
  ofProject(projectRef: number, limit: number): (MeterRow & { meter_id: string })[] {
    return this.byProject.all(projectRef, limit);
  }

  count(projectRef: number): number {
    return this.countByProject.get(projectRef)?.count ?? 0;
  }

  remove(tx: Tx, ref: number): void {
    this.deleteMeter.run(tx, ref);
  }

  removeEntry(tx: Tx, sequence: number): void {
    this.deleteEntry.run(tx, sequence);
  }

  insert(tx: Tx, ref: number, projectRef: number, meterId: string): void {
    this.insertMeter.run(tx, ref, projectRef, meterId);
  }

  settle(tx: Tx, ref: number, balance: number, lastSequence: number): void {
    this.updateMeter.run(tx, balance, lastSequence, ref);
  }

  append(tx: Tx, entry: MeterEntryRow, meterRef: number): void {
    const { sequence, previous, kind, amount, balance_after, at, request_id } = entry;
    this.insertEntry.run(tx, sequence, meterRef, previous, kind, amount, balance_after, at, request_id);
  }

  entry(sequence: number): (MeterEntryRow & { meter_ref: number }) | null {
    return this.entryBySequence.get(sequence);
  }

  /** Entries after a sequence, oldest first: at start-up, those that no settlement has reached. */
  entriesSince(sequence: number): UnsettledEntry[] {
    return this.entriesAfter.all(sequence);
  }

  /** Every meter's row holds at least its entries up to this sequence. */
  settledThrough(): number {
    return this.settled.get()?.value ?? 0;
  }

  setSettledThrough(tx: Tx, sequence: number): void {
    this.saveSettled.run(tx, sequence);
  }

  highestRef(): number {
    return this.highestMeter.get()?.value ?? 0;
  }

  highestSequence(): number {
    return this.highestEntry.get()?.value ?? 0;
  }
}
