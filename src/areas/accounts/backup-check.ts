import { type BackupCheck, counted, ROWS_PER_STEP } from "../../kernel/data/backup-check.ts";

interface AccountSum {
  user_id: string;
  balance: number;
  total: number;
  entries: number;
}

/** Checks that each account balance is the sum of its ledger. */
export const accountBalancesCheck: BackupCheck = {
  name: "account balances",
  async run(db, problems, onRows) {
    let accounts = 0;
    let entries = 0;
    const sums = db.rows<AccountSum>(
      `SELECT user_id, balance, coalesce(sum(amount), 0) AS total, count(sequence) AS entries
       FROM accounts LEFT JOIN account_entries ON account_ref = accounts.ref GROUP BY accounts.ref`,
    );
    for (const sum of sums) {
      if (sum.total !== sum.balance) {
        problems.add(
          `account ${sum.user_id}: the balance is ${sum.balance}, the sum of its ledger is ${sum.total}`,
        );
      }
      accounts += 1;
      const before = entries;
      entries += sum.entries;
      if (Math.floor(before / ROWS_PER_STEP) !== Math.floor(entries / ROWS_PER_STEP)) await onRows(entries);
    }
    const orphan = db.get<{ sequence: number }>(
      "SELECT sequence FROM account_entries WHERE account_ref NOT IN (SELECT ref FROM accounts) LIMIT 1",
    );
    if (orphan !== null) problems.add(`entry ${orphan.sequence}: its account does not exist`);
    return `${counted(accounts, "account")}, ${counted(entries, "ledger entry", "ledger entries")}`;
  },
};
