import type { EntryKind } from "../../kernel/ledger.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierName } from "../../kernel/tiers.ts";

/** A row of `accounts`. */
export type AccountRow = {
  ref: number;
  user_id: string;
  email: string;
  tier: TierName;
  balance: number;
  suspended: number;
  rotated_at: number | null;
  granted_month: number;
  created_at: number;
};

/** A row of `platform_keys`, without the key. */
export interface PlatformKeyRow {
  id: number;
  account_ref: number;
  expires_at: number | null;
}

/** A new platform key, which has no end. */
export type NewPlatformKey = Omit<PlatformKeyRow, "expires_at"> & { digest: Uint8Array; sealed: Uint8Array };

/** A row of `account_entries`. */
export interface AccountEntryRow {
  sequence: number;
  kind: EntryKind;
  amount: number;
  balance_after: number;
  at: number;
  request_id: Uint8Array | null;
  operation: string | null;
  count: number | null;
}

/** A new entry, without its charge. */
export type NewEntry = Omit<AccountEntryRow, "at" | "operation" | "count">;

/** The summed costs of one operation in one hour: one ledger entry, written once per batch. */
export interface ChargeCell {
  readonly sequence: number;
  readonly operation: string;
  readonly hour: number;
  count: number;
  amount: number;
  balanceAfter: number;
  /** Whether its row exists. */
  stored: boolean;
}

const ACCOUNT = "ref, user_id, email, tier, balance, suspended, rotated_at, granted_month, created_at";
const ENTRY = "sequence, kind, amount, balance_after, at, request_id, operation, count";

/** All SQL of accounts, their keys and their ledger. */
export class AccountStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = { ...accountStatements(db), ...keyStatements(db), ...entryStatements(db) };
  }

  /** The largest number given so far to an account, a key or an entry; 0 when there is none. */
  highestNumber(of: "account" | "key" | "entry"): number {
    return this.sql.highest[of].get()?.value ?? 0;
  }

  account(ref: number): AccountRow | null {
    return this.sql.account.get(ref);
  }

  accountByUserId(userId: string): AccountRow | null {
    return this.sql.accountByUserId.get(userId);
  }

  hasEmail(folded: string): boolean {
    return this.sql.accountByEmail.get(folded) !== null;
  }

  /** The account made first; 0 when there is none. */
  firstAccount(): number {
    return this.sql.firstAccount.get()?.ref ?? 0;
  }

  /** The operator's account, as long as its key has not been shown. */
  unannouncedOperator(): number | null {
    return this.sql.unannounced.get()?.value ?? null;
  }

  setUnannouncedOperator(tx: Tx, accountRef: number): void {
    this.sql.insertUnannounced.run(tx, accountRef);
  }

  clearUnannouncedOperator(tx: Tx): void {
    this.sql.deleteUnannounced.run(tx);
  }

  /** Accounts older than `ref`, newest first. */
  accountsBefore(ref: number, limit: number): AccountRow[] {
    return this.sql.accountsBefore.all(ref, limit);
  }

  /** References above `after` of accounts that have no grant of `month` yet. */
  refsWithoutGrant(after: number, month: number, limit: number): number[] {
    return this.sql.withoutGrant.all(after, month, limit).map((row) => row.ref);
  }

  insert(tx: Tx, row: AccountRow, emailFolded: string): void {
    this.sql.insertAccount.run(tx, { ...row, email_folded: emailFolded });
  }

  setBalance(tx: Tx, ref: number, balance: number): void {
    this.sql.updateBalance.run(tx, balance, ref);
  }

  setTerms(tx: Tx, ref: number, tier: TierName, suspended: boolean): void {
    this.sql.updateTerms.run(tx, tier, suspended ? 1 : 0, ref);
  }

  setRotated(tx: Tx, ref: number, at: number | null): void {
    this.sql.updateRotated.run(tx, at, ref);
  }

  setGranted(tx: Tx, ref: number, month: number): void {
    this.sql.updateGranted.run(tx, month, ref);
  }

  keyWithDigest(digest: Uint8Array): PlatformKeyRow | null {
    return this.sql.keyByDigest.get(digest);
  }

  /** The newest key of an account, sealed. */
  newestKeyOf(accountRef: number): Uint8Array | null {
    return this.sql.newestKey.get(accountRef)?.sealed ?? null;
  }

  /** The smallest and the largest number of an account's platform keys; 0 when it has none. */
  platformKeyRange(accountRef: number): { oldest: number; newest: number } {
    const { oldest, newest } = this.sql.keyRange.get(accountRef) ?? {};
    return { oldest: oldest ?? 0, newest: newest ?? 0 };
  }

  insertPlatformKey(tx: Tx, key: NewPlatformKey): void {
    this.sql.insertKey.run(tx, { ...key, now: tx.now });
  }

  /** Gives the account's keys an end, unless theirs is earlier, and deletes the keys whose end has passed. */
  endPlatformKeys(tx: Tx, accountRef: number, expiresAt: number): void {
    this.sql.endKeys.run(tx, expiresAt, accountRef);
    this.sql.deleteEndedKeys.run(tx, accountRef, tx.now);
  }

  /** Deletes all keys of an account. */
  removePlatformKeys(tx: Tx, accountRef: number): void {
    this.sql.deleteKeys.run(tx, accountRef);
  }

  appendEntry(tx: Tx, accountRef: number, entry: NewEntry): void {
    const { sequence, kind, amount, balance_after, request_id } = entry;
    this.sql.insertEntry.run(tx, sequence, accountRef, kind, amount, balance_after, tx.now, request_id);
  }

  writeCharge(tx: Tx, accountRef: number, cell: ChargeCell): void {
    const { sequence, amount, balanceAfter, hour, operation, count } = cell;
    if (cell.stored) this.sql.updateCharge.run(tx, amount, balanceAfter, count, sequence);
    else this.sql.insertCharge.run(tx, sequence, accountRef, amount, balanceAfter, hour, operation, count);
  }

  charge(accountRef: number, operation: string, hour: number): AccountEntryRow | null {
    return this.sql.charge.get(accountRef, operation, hour);
  }

  /** Entries of an account before a sequence, newest first. */
  entries(accountRef: number, before: number, limit: number): AccountEntryRow[] {
    return this.sql.entriesBefore.all(accountRef, before, limit);
  }
}

/** The largest number in a column. */
type Highest = { readonly value: number | null };

function accountStatements(db: Database) {
  return {
    account: db.query<AccountRow, [number]>(`SELECT ${ACCOUNT} FROM accounts WHERE ref = ?`),
    accountByUserId: db.query<AccountRow, [string]>(`SELECT ${ACCOUNT} FROM accounts WHERE user_id = ?`),
    accountByEmail: db.query<{ ref: number }, [string]>("SELECT ref FROM accounts WHERE email_folded = ?"),
    accountsBefore: db.query<AccountRow, [number, number]>(
      `SELECT ${ACCOUNT} FROM accounts WHERE ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    withoutGrant: db.query<{ ref: number }, [number, number, number]>(
      "SELECT ref FROM accounts WHERE ref > ? AND granted_month < ? ORDER BY ref LIMIT ?",
    ),
    firstAccount: db.query<{ ref: number | null }>("SELECT min(ref) AS ref FROM accounts"),
    highest: {
      account: db.query<Highest>("SELECT max(ref) AS value FROM accounts"),
      key: db.query<Highest>("SELECT max(id) AS value FROM platform_keys"),
      entry: db.query<Highest>("SELECT max(sequence) AS value FROM account_entries"),
    },
    insertAccount: db.command<[AccountRow & { email_folded: string }]>(
      `INSERT INTO accounts (${ACCOUNT}, email_folded) VALUES ($ref, $user_id, $email, $tier, $balance, $suspended, $rotated_at, $granted_month, $created_at, $email_folded)`,
    ),
    updateBalance: db.command<[number, number]>("UPDATE accounts SET balance = ? WHERE ref = ?"),
    updateTerms: db.command<[string, number, number]>(
      "UPDATE accounts SET tier = ?, suspended = ? WHERE ref = ?",
    ),
    updateRotated: db.command<[number | null, number]>("UPDATE accounts SET rotated_at = ? WHERE ref = ?"),
    updateGranted: db.command<[number, number]>("UPDATE accounts SET granted_month = ? WHERE ref = ?"),
    unannounced: db.query<{ value: number }>(
      "SELECT value FROM settings WHERE name = 'operator_unannounced'",
    ),
    insertUnannounced: db.command<[number]>(
      "INSERT INTO settings (name, value) VALUES ('operator_unannounced', ?)",
    ),
    deleteUnannounced: db.command("DELETE FROM settings WHERE name = 'operator_unannounced'"),
  };
}

function keyStatements(db: Database) {
  return {
    keyByDigest: db.query<PlatformKeyRow, [Uint8Array]>(
      "SELECT id, account_ref, expires_at FROM platform_keys WHERE digest = ?",
    ),
    newestKey: db.query<{ sealed: Uint8Array }, [number]>(
      "SELECT sealed FROM platform_keys WHERE account_ref = ? ORDER BY id DESC LIMIT 1",
    ),
    keyRange: db.query<{ oldest: number | null; newest: number | null }, [number]>(
      "SELECT min(id) AS oldest, max(id) AS newest FROM platform_keys WHERE account_ref = ?",
    ),
    insertKey: db.command<[NewPlatformKey & { now: number }]>(
      "INSERT INTO platform_keys (id, account_ref, digest, sealed, created_at, expires_at) VALUES ($id, $account_ref, $digest, $sealed, $now, NULL)",
    ),
    endKeys: db.command<[number, number]>(
      "UPDATE platform_keys SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE account_ref = ?2",
    ),
    deleteEndedKeys: db.command<[number, number]>(
      "DELETE FROM platform_keys WHERE account_ref = ? AND expires_at <= ?",
    ),
    deleteKeys: db.command<[number]>("DELETE FROM platform_keys WHERE account_ref = ?"),
  };
}

/** Charges are written with every batch: positions are bound quicker than names. */
function entryStatements(db: Database) {
  return {
    insertEntry: db.command<[number, number, string, number, number, number, Uint8Array | null]>(
      "INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at, request_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    insertCharge: db.command<[number, number, number, number, number, string, number]>(
      "INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at, operation, count) VALUES (?, ?, 'charge', ?, ?, ?, ?, ?)",
    ),
    updateCharge: db.command<[number, number, number, number]>(
      "UPDATE account_entries SET amount = ?, balance_after = ?, count = ? WHERE sequence = ?",
    ),
    charge: db.query<AccountEntryRow, [number, string, number]>(
      `SELECT ${ENTRY} FROM account_entries WHERE account_ref = ? AND operation = ? AND at = ?`,
    ),
    entriesBefore: db.query<AccountEntryRow, [number, number, number]>(
      `SELECT ${ENTRY} FROM account_entries WHERE account_ref = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
    ),
  };
}
