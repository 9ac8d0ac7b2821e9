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
  /** The balance in the entry that the row names; null where that entry is not there. */
  readonly said: number | null;
}

/**
 * Of each meter, by the number of its row: its last entry, the balance in it, and the last entry that a flush of
 * balances has passed. Smaller than objects, and there may be millions.
 */
type Ledger = Readonly<Record<"sequence" | "balance" | "flushed", Float64Array>>;

const ENTRIES = `SELECT sequence, meter_ref, previous, amount, balance_after, ref IS NOT NULL AS known
  FROM meter_entries LEFT JOIN meters ON ref = meter_ref ORDER BY sequence`;
/** Of a deleted project the entries are removed one by one: the row says nothing of them. */
const ROWS = `SELECT meters.ref, balance, last_sequence, CASE last_sequence WHEN 0 THEN 0 ELSE balance_after END AS said
  FROM meters LEFT JOIN meter_entries ON sequence = last_sequence AND meter_ref = meters.ref
  LEFT JOIN projects ON projects.ref = project_ref WHERE deleted_at IS NULL`;
/** A data folder of an earlier version has no holds yet. */
const HAS_HOLDS = "SELECT count(*) AS n FROM sqlite_master WHERE name = 'meter_holds'";
const HELD =
  "SELECT meter_ref, total(amount) AS held FROM meter_holds WHERE status = 1 GROUP BY meter_ref ORDER BY meter_ref";

/**
 * Tenant meters against their ledger: every entry names its meter's previous one; every balance is the sum of the
 * amounts so far, and not negative; every row says what the entry says that it names; no row is so far behind that the
 * next start would not make up for it; and no more is held than there is.
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
        if (held > balance) problems.add(`meter ${ref}: ${held} is held of ${balance}`);
      }
    }
    return `${counted(rows, "balance")}, ${counted(entries, "ledger entry", "ledger entries")}`;
  },
};

function checkEntry(entry: Entry, ledger: Ledger, problems: Problems): void {
  const { sequence, meter_ref: ref, previous, amount, balance_after: balance } = entry;
  const problem = (text: string) => problems.add(`entry ${sequence} of meter ${ref}: ${text}`);
  if (entry.known === 0) {
    problem("there is no such meter");
    return;
  }
  const before = ledger.sequence[ref] ?? 0;
  const balanceBefore = ledger.balance[ref] ?? 0;
  if (previous !== before) problem(`names ${previous} as the one before, but that is ${before}`);
  if (balance !== balanceBefore + amount) problem(`${balanceBefore} changed by ${amount} is not ${balance}`);
  if (balance < 0) problem("the balance is negative");
  ledger.sequence[ref] = sequence;
  ledger.balance[ref] = balance;
}

function checkRow(
  { ref, balance, last_sequence, said }: MeterRow,
  flushed: number,
  problems: Problems,
): void {
  const problem = (text: string) => problems.add(`meter ${ref}: ${text}`);
  if (said === null) problem(`its row names entry ${last_sequence}, which is not there`);
  else if (said !== balance) problem(`the balance is ${balance}, but entry ${last_sequence} says ${said}`);
  if (flushed > last_sequence) problem(`its row is behind at entry ${last_sequence}, ${flushed} is settled`);
}
