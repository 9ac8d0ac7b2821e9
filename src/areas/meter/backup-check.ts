import { type BackupCheck, counted, type Problems, ROWS_PER_STEP } from "../../kernel/backup-check.ts";
import type { OfflineDatabase } from "../../kernel/storage/offline.ts";

interface Entry {
  sequence: number;
  meter_ref: number;
  previous: number;
  amount: number;
  balance_after: number;
}

interface MeterRow {
  ref: number;
  balance: number;
  last_sequence: number;
  /** 1 when its project is deleted: then its entries are removed one by one, and its row says nothing of them. */
  leaving: number;
}

/** What is known of each meter, by the number of its row: far smaller than objects, and there may be millions. */
class Meters {
  /** The row's last entry, plus one; 0 where there is no row. */
  readonly rowSequence: Float64Array;
  readonly rowBalance: Float64Array;
  /** The balance in the entry that the row names. */
  readonly saidBalance: Float64Array;
  readonly lastSequence: Float64Array;
  readonly lastBalance: Float64Array;
  /** The last entry that a settlement has passed. */
  readonly settledSequence: Float64Array;

  constructor(count: number) {
    this.rowSequence = new Float64Array(count);
    this.rowBalance = new Float64Array(count);
    this.saidBalance = new Float64Array(count).fill(Number.NaN);
    this.lastSequence = new Float64Array(count);
    this.lastBalance = new Float64Array(count);
    this.settledSequence = new Float64Array(count);
  }
}

/**
 * Tenant meters against their ledger: every entry names its meter's previous one; every balance is the sum of the
 * amounts so far, and not negative; every row says what the entry says that it names; and no row is so far behind that
 * the next start would not make up for it.
 */
export const metersCheck: BackupCheck = {
  name: "meters",
  async run(db, problems, onRows) {
    const count = 1 + (db.get<{ ref: number | null }>("SELECT max(ref) AS ref FROM meters")?.ref ?? 0);
    const meters = new Meters(count);
    const rows = readRows(db, meters);
    const settledThrough =
      db.get<{ value: number }>("SELECT value FROM settings WHERE name = 'meter_settled_through'")?.value ??
      0;
    let entries = 0;
    const all = db.rows<Entry>(
      "SELECT sequence, meter_ref, previous, amount, balance_after FROM meter_entries ORDER BY sequence",
    );
    for (const entry of all) {
      checkEntry(entry, meters, settledThrough, problems);
      entries += 1;
      if (entries % ROWS_PER_STEP === 0) await onRows(entries);
    }
    for (const ref of rows) checkRow(ref, meters, problems);
    return `${counted(rows.length, "balance")}, ${counted(entries, "ledger entry", "ledger entries")}`;
  },
};

/** Reads the rows. Returns the references of those that must agree with the ledger. */
function readRows(db: OfflineDatabase, meters: Meters): number[] {
  const refs: number[] = [];
  const rows = db.rows<MeterRow>(
    `SELECT meters.ref, balance, last_sequence, deleted_at IS NOT NULL AS leaving
       FROM meters LEFT JOIN projects ON projects.ref = project_ref`,
  );
  for (const { ref, balance, last_sequence, leaving } of rows) {
    meters.rowSequence[ref] = last_sequence + 1;
    meters.rowBalance[ref] = balance;
    if (leaving === 0) refs.push(ref);
  }
  return refs;
}

function checkEntry(entry: Entry, meters: Meters, settledThrough: number, problems: Problems): void {
  const { sequence, meter_ref: ref, previous, amount, balance_after: balance } = entry;
  const rowSequence = meters.rowSequence[ref] ?? 0;
  const name = `entry ${sequence} of meter ${ref}`;
  if (rowSequence === 0) {
    problems.add(`${name}: there is no such meter`);
    return;
  }
  const before = meters.lastSequence[ref] ?? 0;
  const balanceBefore = meters.lastBalance[ref] ?? 0;
  if (previous !== before)
    problems.add(`${name}: names ${previous} as the one before, but that is ${before}`);
  if (balance !== balanceBefore + amount)
    problems.add(`${name}: ${balanceBefore} changed by ${amount} is not ${balance}`);
  if (balance < 0) problems.add(`${name}: the balance is negative`);
  meters.lastSequence[ref] = sequence;
  meters.lastBalance[ref] = balance;
  if (sequence === rowSequence - 1) meters.saidBalance[ref] = balance;
  if (sequence <= settledThrough) meters.settledSequence[ref] = sequence;
}

function checkRow(ref: number, meters: Meters, problems: Problems): void {
  const sequence = (meters.rowSequence[ref] ?? 0) - 1;
  const balance = meters.rowBalance[ref] ?? 0;
  const said = sequence === 0 ? 0 : (meters.saidBalance[ref] ?? Number.NaN);
  if (Number.isNaN(said)) problems.add(`meter ${ref}: its row names entry ${sequence}, which is not there`);
  else if (said !== balance)
    problems.add(`meter ${ref}: the balance is ${balance}, but entry ${sequence} says ${said}`);
  const settled = meters.settledSequence[ref] ?? 0;
  if (settled > sequence)
    problems.add(`meter ${ref}: its row is behind at entry ${sequence}, ${settled} is settled`);
}
