import type { EntryKind } from "../../kernel/ledger-entry.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { TierName } from "../../kernel/tiers.ts";
import type { ChargeCell } from "./actor.ts";

/** A row of `accounts`. */
export interface AccountRow {
  ref: number;
  user_id: string;
  email: string;
  tier: TierName;
  balance: number;
  suspended: number;
  rotated_at: number | null;
  granted_month: number;
  created_at: number;
}

/** A row of `platform_keys`, without its digest. */
export interface PlatformKeyRow {
  id: number;
  account_ref: number;
  expires_at: number | null;
}

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

/** What a new entry holds. */
export interface NewAccountEntry {
  readonly sequence: number;
  readonly accountRef: number;
  readonly kind: EntryKind;
  readonly amount: number;
  readonly balanceAfter: number;
  readonly at: number;
  readonly requestId: Uint8Array | null;
}

const ACCOUNT = "ref, user_id, email, tier, balance, suspended, rotated_at, granted_month, created_at";

/** All SQL of accounts, their keys and their ledger. */
export class AccountStore {
  private readonly byRef;
  private readonly byUserId;
  private readonly byEmail;
  private readonly before;
  private readonly withoutGrant;
  private readonly first;
  private readonly insertAccount;
  private readonly updateBalance;
  private readonly updateTerms;
  private readonly updateRotated;
  private readonly updateGranted;
  private readonly keyByDigest;
  private readonly newestKey;
  private readonly keyRange;
  private readonly insertKey;
  private readonly endKeys;
  private readonly deleteEndedKeys;
  private readonly deleteKeys;
  private readonly insertEntry;
  private readonly insertCharge;
  private readonly updateCharge;
  private readonly chargeAt;
  private readonly entriesBefore;
  private readonly highest;
  private readonly unannounced;
  private readonly insertUnannounced;
  private readonly deleteUnannounced;

  constructor(db: Database) {
    this.byRef = db.query<AccountRow, [number]>(`SELECT ${ACCOUNT} FROM accounts WHERE ref = ?`);
    this.byUserId = db.query<AccountRow, [string]>(`SELECT ${ACCOUNT} FROM accounts WHERE user_id = ?`);
    this.byEmail = db.query<{ ref: number }, [string]>("SELECT ref FROM accounts WHERE email_folded = ?");
    this.before = db.query<AccountRow, [number, number]>(
      `SELECT ${ACCOUNT} FROM accounts WHERE ref < ? ORDER BY ref DESC LIMIT ?`,
    );
    this.withoutGrant = db.query<{ ref: number }, [number, number, number]>(
      "SELECT ref FROM accounts WHERE ref > ? AND granted_month < ? ORDER BY ref LIMIT ?",
    );
    this.first = db.query<{ ref: number | null }>("SELECT min(ref) AS ref FROM accounts");
    this.insertAccount = db.command<[number, string, string, string, string, number, number, number]>(
      "INSERT INTO accounts (ref, user_id, email, email_folded, tier, balance, suspended, granted_month, created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
    );
    this.updateBalance = db.command<[number, number]>("UPDATE accounts SET balance = ? WHERE ref = ?");
    this.updateTerms = db.command<[string, number, number]>(
      "UPDATE accounts SET tier = ?, suspended = ? WHERE ref = ?",
    );
    this.updateRotated = db.command<[number | null, number]>(
      "UPDATE accounts SET rotated_at = ? WHERE ref = ?",
    );
    this.updateGranted = db.command<[number, number]>("UPDATE accounts SET granted_month = ? WHERE ref = ?");
    this.keyByDigest = db.query<PlatformKeyRow, [Uint8Array]>(
      "SELECT id, account_ref, expires_at FROM platform_keys WHERE digest = ?",
    );
    this.newestKey = db.query<{ id: number; sealed: Uint8Array }, [number]>(
      "SELECT id, sealed FROM platform_keys WHERE account_ref = ? ORDER BY id DESC LIMIT 1",
    );
    this.keyRange = db.query<{ oldest: number | null; newest: number | null }, [number]>(
      "SELECT min(id) AS oldest, max(id) AS newest FROM platform_keys WHERE account_ref = ?",
    );
    this.insertKey = db.command<[number, number, Uint8Array, Uint8Array, number]>(
      "INSERT INTO platform_keys (id, account_ref, digest, sealed, created_at, expires_at) VALUES (?, ?, ?, ?, ?, NULL)",
    );
    this.endKeys = db.command<[number, number]>(
      "UPDATE platform_keys SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE account_ref = ?2",
    );
    this.deleteKeys = db.command<[number]>("DELETE FROM platform_keys WHERE account_ref = ?");
    this.deleteEndedKeys = db.command<[number, number]>(
      "DELETE FROM platform_keys WHERE account_ref = ? AND expires_at <= ?",
    );
    this.insertEntry = db.command<[number, number, string, number, number, number, Uint8Array | null]>(
      "INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at, request_id) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    this.insertCharge = db.command<[number, number, number, number, number, string, number]>(
      "INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at, operation, count) VALUES (?, ?, 'charge', ?, ?, ?, ?, ?)",
    );
    this.updateCharge = db.command<[number, number, number, number]>(
      "UPDATE account_entries SET amount = ?, balance_after = ?, count = ? WHERE sequence = ?",
    );
    this.chargeAt = db.query<AccountEntryRow, [number, string, number]>(
      "SELECT sequence, kind, amount, balance_after, at, request_id, operation, count FROM account_entries WHERE account_ref = ? AND operation = ? AND at = ?",
    );
    this.entriesBefore = db.query<AccountEntryRow, [number, number, number]>(
      "SELECT sequence, kind, amount, balance_after, at, request_id, operation, count FROM account_entries WHERE account_ref = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
    );
    this.unannounced = db.query<{ value: number }>(
      "SELECT value FROM settings WHERE name = 'operator_unannounced'",
    );
    this.insertUnannounced = db.command<[number]>(
      "INSERT INTO settings (name, value) VALUES ('operator_unannounced', ?)",
    );
    this.deleteUnannounced = db.command("DELETE FROM settings WHERE name = 'operator_unannounced'");
    this.highest = {
      account: db.query<{ value: number | null }>("SELECT max(ref) AS value FROM accounts"),
      key: db.query<{ value: number | null }>("SELECT max(id) AS value FROM platform_keys"),
      entry: db.query<{ value: number | null }>("SELECT max(sequence) AS value FROM account_entries"),
    };
  }

  /** The largest number given so far to an account, a key or an entry; 0 when there is none. */
  highestNumber(of: "account" | "key" | "entry"): number {
    return this.highest[of].get()?.value ?? 0;
  }

  account(ref: number): AccountRow | null {
    return this.byRef.get(ref);
  }

  accountByUserId(userId: string): AccountRow | null {
    return this.byUserId.get(userId);
  }

  hasEmail(folded: string): boolean {
    return this.byEmail.get(folded) !== null;
  }

  /** The account made first; 0 when there is none. */
  firstAccount(): number {
    return this.first.get()?.ref ?? 0;
  }

  /** The operator's account, as long as nobody has been told its key. */
  unannouncedOperator(): number | null {
    return this.unannounced.get()?.value ?? null;
  }

  setUnannouncedOperator(tx: Tx, accountRef: number): void {
    this.insertUnannounced.run(tx, accountRef);
  }

  clearUnannouncedOperator(tx: Tx): void {
    this.deleteUnannounced.run(tx);
  }

  /** Accounts older than `ref`, newest first. */
  accountsBefore(ref: number, limit: number): AccountRow[] {
    return this.before.all(ref, limit);
  }

  /** References above `after` of accounts that have no grant of `month` yet. */
  refsWithoutGrant(after: number, month: number, limit: number): number[] {
    return this.withoutGrant.all(after, month, limit).map((row) => row.ref);
  }

  insert(tx: Tx, row: AccountRow, emailFolded: string): void {
    const { ref, user_id, email, tier, balance, granted_month, created_at } = row;
    this.insertAccount.run(tx, ref, user_id, email, emailFolded, tier, balance, granted_month, created_at);
  }

  setBalance(tx: Tx, ref: number, balance: number): void {
    this.updateBalance.run(tx, balance, ref);
  }

  setTerms(tx: Tx, ref: number, tier: TierName, suspended: boolean): void {
    this.updateTerms.run(tx, tier, suspended ? 1 : 0, ref);
  }

  setRotated(tx: Tx, ref: number, at: number | null): void {
    this.updateRotated.run(tx, at, ref);
  }

  setGranted(tx: Tx, ref: number, month: number): void {
    this.updateGranted.run(tx, month, ref);
  }

  keyWithDigest(digest: Uint8Array): PlatformKeyRow | null {
    return this.keyByDigest.get(digest);
  }

  newestKeyOf(accountRef: number): { id: number; sealed: Uint8Array } | null {
    return this.newestKey.get(accountRef);
  }

  /** The smallest and the largest number of an account's platform keys; 0 when it has none. */
  platformKeyRange(accountRef: number): { oldest: number; newest: number } {
    const { oldest, newest } = this.keyRange.get(accountRef) ?? {};
    return { oldest: oldest ?? 0, newest: newest ?? 0 };
  }

  insertPlatformKey(tx: Tx, id: number, accountRef: number, digest: Uint8Array, sealed: Uint8Array): void {
    this.insertKey.run(tx, id, accountRef, digest, sealed, tx.now);
  }

  /** Gives the account's keys an end, as far as theirs is not earlier, and forgets keys whose end has passed. */
  endPlatformKeys(tx: Tx, accountRef: number, expiresAt: number): void {
    this.endKeys.run(tx, expiresAt, accountRef);
    this.deleteEndedKeys.run(tx, accountRef, tx.now);
  }

  /** Forgets all keys of an account. */
  removePlatformKeys(tx: Tx, accountRef: number): void {
    this.deleteKeys.run(tx, accountRef);
  }

  appendEntry(tx: Tx, entry: NewAccountEntry): void {
    const { sequence, accountRef, kind, amount, balanceAfter, at, requestId } = entry;
    this.insertEntry.run(tx, sequence, accountRef, kind, amount, balanceAfter, at, requestId);
  }

  writeCharge(tx: Tx, accountRef: number, cell: ChargeCell): void {
    const { sequence, amount, balanceAfter, hour, operation, count } = cell;
    if (cell.stored) this.updateCharge.run(tx, amount, balanceAfter, count, sequence);
    else this.insertCharge.run(tx, sequence, accountRef, amount, balanceAfter, hour, operation, count);
  }

  charge(accountRef: number, operation: string, hour: number): AccountEntryRow | null {
    return this.chargeAt.get(accountRef, operation, hour);
  }

  /** Entries of an account before a sequence, newest first. */
  entries(accountRef: number, before: number, limit: number): AccountEntryRow[] {
    return this.entriesBefore.all(accountRef, before, limit);
  }
}
