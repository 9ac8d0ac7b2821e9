import {
  type BackupCheck,
  counted,
  type RestoreStep,
  ROWS_PER_STEP,
} from "../../kernel/data/backup-check.ts";

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
    // The ledger of a deleted account is being removed. Earlier versions deleted none.
    const hasDeleted =
      db.get("SELECT 1 FROM pragma_table_info('accounts') WHERE name = 'deleted_at'") !== null;
    const sums = db.rows<AccountSum>(
      `SELECT user_id, balance, coalesce(sum(amount), 0) AS total, count(sequence) AS entries
       FROM accounts LEFT JOIN account_entries ON account_ref = accounts.ref
       ${hasDeleted ? "WHERE deleted_at IS NULL" : ""} GROUP BY accounts.ref`,
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

/**
 * Removes what a lost master key has sealed of accounts: the text of platform keys, which still authenticate, stored
 * responses and queued e-mails.
 */
export const forgetAccountSecrets: RestoreStep = (db) => {
  db.execute("UPDATE platform_keys SET sealed = x''");
  db.execute("DELETE FROM settings WHERE name IN ('master_key_check', 'operator_unannounced')");
  db.execute("DELETE FROM idempotency");
  const mails = db.get<{ n: number }>("SELECT count(*) AS n FROM jobs WHERE kind = 'mail.send'")?.n ?? 0;
  db.execute("DELETE FROM jobs WHERE kind = 'mail.send'");
  return [
    "lost      the texts of platform keys: they still work, but deliveries have no X-Svc-Signature until an account rotates its key (POST /v1/keys/rotate)",
    `lost      ${counted(mails, "queued e-mail")}, and the responses stored under Idempotency-Keys`,
  ];
};
