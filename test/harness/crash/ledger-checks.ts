import { Database } from "bun:sqlite";

/** Number of differences that are listed before the rest is counted: a damaged file has many. */
const LISTED_MAX = 10;

interface MeterEntry {
  sequence: number;
  meter_ref: number;
  previous: number;
  amount: number;
  balance_after: number;
}

/** Reads a live database in one transaction, for a consistent view. */
function look<T>(path: string, read: (db: Database) => T): T {
  const db = new Database(path, { readonly: true });
  try {
    db.run("PRAGMA busy_timeout = 5000");
    return db.transaction(() => read(db))();
  } finally {
    db.close();
  }
}

/** SQLite's check of the whole file. Returns its findings. */
export function checkIntegrity(path: string): string[] {
  const rows = look(path, (db) => db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all());
  return rows
    .map((row) => row.integrity_check)
    .filter((text) => text !== "ok")
    .map((text) => `integrity_check: ${text}`);
}

/**
 * The ledger of tenant meters in the file: every entry names its meter's previous one, every balance is the sum
 * of the amounts so far and never negative, and every meter's row matches one of its entries.
 */
export function checkMeterLedger(path: string): string[] {
  return look(path, (db) => {
    const problems: string[] = [];
    const last = new Map<number, { sequence: number; balance: number }>();
    const balances = new Map<string, number>();
    const entries = db.query<MeterEntry, []>(
      "SELECT sequence, meter_ref, previous, amount, balance_after FROM meter_entries ORDER BY sequence",
    );
    for (const entry of entries.iterate()) {
      const before = last.get(entry.meter_ref) ?? { sequence: 0, balance: 0 };
      problems.push(...compareLink(entry, before));
      last.set(entry.meter_ref, { sequence: entry.sequence, balance: entry.balance_after });
      balances.set(`${entry.meter_ref} ${entry.sequence}`, entry.balance_after);
    }
    const rows = db.query<{ ref: number; balance: number; last_sequence: number }, []>(
      "SELECT ref, balance, last_sequence FROM meters",
    );
    for (const row of rows.iterate()) {
      const said = row.last_sequence === 0 ? 0 : balances.get(`${row.ref} ${row.last_sequence}`);
      if (said === row.balance) continue;
      problems.push(
        `meter row ${row.ref}: balance ${row.balance} as of entry ${row.last_sequence}, which says ${String(said)}`,
      );
    }
    return shortened(problems);
  });
}

function compareLink(entry: MeterEntry, before: { sequence: number; balance: number }): string[] {
  const problems: string[] = [];
  const name = `meter row ${entry.meter_ref}, entry ${entry.sequence}`;
  if (entry.previous !== before.sequence) {
    problems.push(
      `${name}: refers to ${entry.previous} as the previous entry, but that is ${before.sequence}`,
    );
  }
  if (entry.balance_after !== before.balance + entry.amount) {
    problems.push(`${name}: ${before.balance} changed by ${entry.amount} is not ${entry.balance_after}`);
  }
  if (entry.balance_after < 0) problems.push(`${name}: the balance is negative`);
  return problems;
}

/** Account balances in the file: each is the sum of its account's ledger. */
export function checkAccountLedger(path: string): string[] {
  const rows = look(path, (db) =>
    db
      .query<{ email: string; balance: number; total: number }, []>(
        "SELECT email, balance, coalesce((SELECT sum(amount) FROM account_entries WHERE account_ref = ref), 0) AS total FROM accounts WHERE deleted_at IS NULL",
      )
      .all(),
  );
  return shortened(
    rows
      .filter((row) => row.balance !== row.total)
      .map(
        (row) => `account ${row.email}: the balance is ${row.balance}, its ledger sums up to ${row.total}`,
      ),
  );
}

/** Flags in the file that belong to an account, deleted or not. */
export function countFlagsOf(path: string, userId: string): number {
  const row = look(path, (db) =>
    db
      .query<{ n: number }, [string]>(
        `SELECT count(*) AS n FROM accounts JOIN projects ON projects.account_ref = accounts.ref
         JOIN flags ON flags.project_ref = projects.ref WHERE user_id = ?`,
      )
      .get(userId),
  );
  return row?.n ?? 0;
}

function shortened(problems: readonly string[]): string[] {
  if (problems.length <= LISTED_MAX) return [...problems];
  return [...problems.slice(0, LISTED_MAX), `… and ${problems.length - LISTED_MAX} more like these`];
}
