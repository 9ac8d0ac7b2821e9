import { type BackupCheck, counted, type Problems, ROWS_PER_STEP } from "../../kernel/data/backup-check.ts";

interface Entry {
  readonly sequence: number;
  readonly meter_ref: number;
  readonly previous: number;
  readonly amount: number;
  readonly balance_after: number;
  /** 0 when there is no such meter. */
  readonly known: number;
}

interface MeterRow {
  readonly ref: number;
  readonly balance: number;
  readonly last_sequence: number;
  /** Balance of the row's last entry; null if the entry is missing. */
  readonly entry_balance: number | null;
}

/**
 * For each meter, by its row number: last entry, its balance, and the last flushed entry. Arrays, because there may be
 * millions of meters.
 */
type Ledger = Readonly<Record<"sequence" | "balance" | "flushed", Float64Array>>;

const ENTRIES = `SELECT sequence, meter_ref, previous, amount, balance_after, ref IS NOT NULL AS known
  FROM meter_entries LEFT JOIN meters ON ref = meter_ref ORDER BY sequence`;
/** Without deleted projects, whose entries are removed step by step. */
const ROWS = `SELECT meters.ref, balance, last_sequence, CASE last_sequence WHEN 0 THEN 0 ELSE balance_after END AS entry_balance
  FROM meters LEFT JOIN meter_entries ON sequence = last_sequence AND meter_ref = meters.ref
  LEFT JOIN projects ON projects.ref = project_ref WHERE deleted_at IS NULL`;
/** A data folder of an earlier version has no holds yet. */
const HAS_HOLDS = "SELECT count(*) AS n FROM sqlite_master WHERE name = 'meter_holds'";
const HELD =
  "SELECT meter_ref, total(amount) AS held FROM meter_holds WHERE status = 1 GROUP BY meter_ref ORDER BY meter_ref";

/**
 * Checks tenant meters against their ledger: every entry refers to its meter's previous one; every balance is the sum of the
 * amounts and not negative; every row matches its last entry; no row is older than the last flush; and no more credits are held
 * than exist.
 */
export const metersCheck: BackupCheck = {
  name: "meters",
  async run(db, problems, onRows) {
    const number = (sql: string) => db.get<{ n: number | null }>(sql)?.n ?? 0;
    const flushedThrough = number("SELECT value AS n FROM settings WHERE name = 'meter_settled_through'");
    const count = 1 + number("SELECT max(ref) AS n FROM meters");
    const column = () => new Float64Array(count);
    const ledger = { sequence: column(), balance: column(), flushed: column() };
    let entries = 0;
    for (const entry of db.rows<Entry>(ENTRIES)) {
      checkEntry(entry, ledger, problems);
      if (entry.sequence <= flushedThrough) ledger.flushed[entry.meter_ref] = entry.sequence;
      entries += 1;
      if (entries % ROWS_PER_STEP === 0) await onRows(entries);
    }
    let rows = 0;
    for (const row of db.rows<MeterRow>(ROWS)) {
      checkRow(row, ledger.flushed[row.ref] ?? 0, problems);
      rows += 1;
    }
    if (number(HAS_HOLDS) > 0) {
      for (const { meter_ref: ref, held } of db.rows<{ meter_ref: number; held: number }>(HELD)) {
        const balance = ledger.balance[ref] ?? 0;
        if (held > balance)
          problems.add(`meter ${ref}: ${held} credits are held, but the balance is ${balance}`);
      }
    }
    return `${counted(rows, "balance")}, ${counted(entries, "ledger entry", "ledger entries")}`;
  },
};

function checkEntry(entry: Entry, ledger: Ledger, problems: Problems): void {
  const { sequence, meter_ref: ref, previous, amount, balance_after: balance } = entry;
  const problem = (text: string) => problems.add(`entry ${sequence} of meter ${ref}: ${text}`);
  if (entry.known === 0) {
    problem("its meter does not exist");
    return;
  }
  const before = ledger.sequence[ref] ?? 0;
  const balanceBefore = ledger.balance[ref] ?? 0;
  if (previous !== before) problem(`refers to ${previous} as the previous entry, which is ${before}`);
  if (balance !== balanceBefore + amount) problem(`${balanceBefore} changed by ${amount} is not ${balance}`);
  if (balance < 0) problem("the balance is negative");
  ledger.sequence[ref] = sequence;
  ledger.balance[ref] = balance;
}

function checkRow(
  { ref, balance, last_sequence, entry_balance }: MeterRow,
  flushed: number,
  problems: Problems,
): void {
  const problem = (text: string) => problems.add(`meter ${ref}: ${text}`);
  if (entry_balance === null) problem(`its row refers to the missing entry ${last_sequence}`);
  else if (entry_balance !== balance)
    problem(`the balance is ${balance}, but entry ${last_sequence} has ${entry_balance}`);
  if (flushed > last_sequence) problem(`its row is at entry ${last_sequence}, but ${flushed} was flushed`);
}
