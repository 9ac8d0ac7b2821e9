import type { EntryKind } from "../../kernel/data/ledger.ts";
import type { TierName } from "../../kernel/limits/tiers.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { References } from "../../kernel/storage/references.ts";

export type AccountRow = {
  readonly ref: number;
  readonly userId: string;
  email: string;
  tier: TierName;
  balance: number;
  readonly suspended: number;
  /** Epoch milliseconds; null unless the account is deleted and what is left of it is being removed. */
  readonly deletedAt: number | null;
  rotatedAt: number | null;
  readonly createdAt: number;
  /** Platform keys with a smaller number are revoked. */
  oldestKey: number;
  /** Number of the newest platform key: older ones are in their grace period. 0 before there is a key. */
  newestKey: number;
};

/** A new row, with the month of its first credits. */
type NewAccount = AccountRow & { readonly emailFolded: string; readonly month: number };

type NewPlatformKey = { id: number; accountRef: number; digest: Uint8Array; sealed: Uint8Array; now: number };

/** The summed costs of one operation in one hour: one ledger entry, written once per batch. */
export interface ChargeRow {
  readonly sequence: number;
  amount: number;
  balance_after: number;
  /** Start of the hour, epoch milliseconds. */
  readonly at: number;
  readonly operation: string;
  count: number;
}

export interface AccountEntryRow extends Pick<ChargeRow, "sequence" | "amount" | "balance_after" | "at"> {
  readonly kind: EntryKind;
  readonly request_id: Uint8Array | null;
  readonly operation: string | null;
  readonly count: number | null;
}

const KEYS = "FROM platform_keys WHERE account_ref = accounts.ref";

export type AccountStore = ReturnType<typeof accountStore>;

/** The SQL statements of accounts, their keys and their ledger. */
export function accountStore(db: Database) {
  return { ...accountStatements(db), ...keyStatements(db), ...entryStatements(db) };
}

function accountStatements(db: Database) {
  const references = new References(db, "accounts", "accounts_highest_removed");
  return {
    /** Includes removed accounts: what names one outside of the database never names another. */
    highestRef: references.highest,
    recordRemoved: references.removed,
    account: db.one<AccountRow, [ref: number]>(
      `SELECT ref, user_id AS userId, email, tier, balance, suspended, rotated_at AS rotatedAt, created_at AS createdAt, deleted_at AS deletedAt,
         (SELECT coalesce(min(id), 0) ${KEYS}) AS oldestKey, (SELECT coalesce(max(id), 0) ${KEYS}) AS newestKey
         FROM accounts WHERE ref = ?`,
    ),
    /** 0 when there is none. */
    refOfUser: db.number<[userId: string]>(
      "SELECT ref AS n FROM accounts WHERE user_id = ? AND deleted_at IS NULL",
    ),
    /** 0 when there is none. */
    refOfEmail: db.number<[folded: string]>("SELECT ref AS n FROM accounts WHERE email_folded = ?"),
    /** The first account; 0 when there is none. */
    firstRef: db.number("SELECT min(ref) AS n FROM accounts"),
    /** Newest first. */
    refsBefore: db.all<{ readonly ref: number }, [ref: number, limit: number]>(
      "SELECT ref FROM accounts WHERE ref < ? AND deleted_at IS NULL ORDER BY ref DESC LIMIT ?",
    ),
    /** Accounts without a grant for the month. */
    refsWithoutGrant: db.all<{ readonly ref: number }, [after: number, month: number, limit: number]>(
      "SELECT ref FROM accounts WHERE ref > ? AND granted_month < ? AND deleted_at IS NULL ORDER BY ref LIMIT ?",
    ),
    insert: db.change<[NewAccount]>(
      "INSERT INTO accounts (ref, user_id, email, tier, balance, suspended, rotated_at, granted_month, created_at, email_folded) VALUES ($ref, $userId, $email, $tier, $balance, $suspended, $rotatedAt, $month, $createdAt, $emailFolded)",
    ),
    setBalance: db.change<[balance: number, ref: number]>("UPDATE accounts SET balance = ? WHERE ref = ?"),
    suspended: db.all<{ readonly ref: number }>("SELECT ref FROM accounts WHERE suspended = 1"),
    setTerms: db.change<[tier: TierName, suspended: number, ref: number]>(
      "UPDATE accounts SET tier = ?, suspended = ? WHERE ref = ?",
    ),
    setEmail: db.change<[email: string, folded: string, ref: number]>(
      "UPDATE accounts SET email = ?, email_folded = ? WHERE ref = ?",
    ),
    /** Frees the e-mail address, and forgets it. */
    markDeleted: db.change<[{ ref: number; now: number }]>(
      "UPDATE accounts SET deleted_at = $now, suspended = 1, email = '', email_folded = 'deleted/' || $ref WHERE ref = $ref",
    ),
    remove: db.change<[ref: number]>("DELETE FROM accounts WHERE ref = ?"),
    counts: db.all<{ readonly kind: string; readonly count: number }, [ref: number]>(
      "SELECT kind, count FROM account_counts WHERE account_ref = ? ORDER BY kind",
    ),
    removeCounts: db.change<[ref: number]>("DELETE FROM account_counts WHERE account_ref = ?"),
    setRotated: db.change<[at: number | null, ref: number]>(
      "UPDATE accounts SET rotated_at = ? WHERE ref = ?",
    ),
    setGranted: db.change<[month: number, ref: number]>(
      "UPDATE accounts SET granted_month = ? WHERE ref = ?",
    ),
    /** The operator's account until its key has been shown; then 0. */
    unannouncedOperator: db.number("SELECT value AS n FROM settings WHERE name = 'operator_unannounced'"),
    setUnannouncedOperator: db.change<[ref: number]>(
      "INSERT INTO settings (name, value) VALUES ('operator_unannounced', ?)",
    ),
    clearUnannouncedOperator: db.change("DELETE FROM settings WHERE name = 'operator_unannounced'"),
  };
}

function keyStatements(db: Database) {
  const references = new References(db, "platform_keys", "platform_keys_highest_removed", "id");
  return {
    highestKey: references.highest,
    recordRemovedKey: references.removed,
    keyWithDigest: db.one<
      { id: number; account_ref: number; expires_at: number | null },
      [digest: Uint8Array]
    >("SELECT id, account_ref, expires_at FROM platform_keys WHERE digest = ?"),
    digestOfKey: db.one<{ readonly digest: Uint8Array }, [id: number]>(
      "SELECT digest FROM platform_keys WHERE id = ?",
    ),
    newestKeyOf: db.one<{ readonly sealed: Uint8Array }, [accountRef: number]>(
      "SELECT sealed FROM platform_keys WHERE account_ref = ? ORDER BY id DESC LIMIT 1",
    ),
    insertKey: db.change<[NewPlatformKey]>(
      "INSERT INTO platform_keys (id, account_ref, digest, sealed, created_at, expires_at) VALUES ($id, $accountRef, $digest, $sealed, $now, NULL)",
    ),
    /** Sets the expiry of the account's keys, unless they expire earlier. */
    expireKeys: db.change<[expiresAt: number, accountRef: number]>(
      "UPDATE platform_keys SET expires_at = min(coalesce(expires_at, ?1), ?1) WHERE account_ref = ?2",
    ),
    removeExpiredKeys: db.change<[accountRef: number, now: number]>(
      "DELETE FROM platform_keys WHERE account_ref = ? AND expires_at <= ?",
    ),
    removeKeys: db.change<[accountRef: number]>("DELETE FROM platform_keys WHERE account_ref = ?"),
  };
}

/** Charges are written with every batch: binding by position is faster than by name. */
function entryStatements(db: Database) {
  return {
    highestEntry: db.number("SELECT max(sequence) AS n FROM account_entries"),
    /** Inserts an entry, or updates a charge. */
    writeEntry: db.change<
      [
        sequence: number,
        accountRef: number,
        kind: EntryKind,
        amount: number,
        balanceAfter: number,
        at: number,
        requestId: Uint8Array | null,
        operation: string | null,
        count: number | null,
      ]
    >(
      `INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at, request_id, operation, count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (sequence) DO UPDATE SET amount = excluded.amount, balance_after = excluded.balance_after, count = excluded.count`,
    ),
    removeEntries: db.change<[accountRef: number, rowsMax: number]>(
      "DELETE FROM account_entries WHERE sequence IN (SELECT sequence FROM account_entries WHERE account_ref = ? LIMIT ?)",
    ),
    charge: db.one<ChargeRow, [accountRef: number, operation: string, hour: number]>(
      "SELECT sequence, amount, balance_after, at, operation, count FROM account_entries WHERE account_ref = ? AND operation = ? AND at = ?",
    ),
    /** Newest first. */
    entriesBefore: db.all<AccountEntryRow, [accountRef: number, sequence: number, limit: number]>(
      "SELECT sequence, kind, amount, balance_after, at, request_id, operation, count FROM account_entries WHERE account_ref = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
    ),
  };
}
