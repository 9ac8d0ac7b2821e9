import type { ManagedBy } from "../../kernel/resources/managed.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { AllowanceRow } from "./allowance.ts";

/** A new row of `keys`. */
export type NewKeyRow = {
  readonly ref: number;
  readonly id: Uint8Array;
  readonly account_ref: number;
  readonly project_ref: number | null;
  readonly project_id: string | null;
  /** SHA-256 of the secret; of an imported key, after the reference of its account. */
  readonly digest: Uint8Array;
  /** Empty for an imported key without one. */
  readonly prefix: string;
  /** Empty for an imported key. */
  readonly last4: string;
  readonly name: string;
  readonly scopes: string;
  readonly environment: string | null;
  readonly metadata: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly owner_id: string | null;
  readonly meter_id: string | null;
  /** 0 while the key is paused. */
  readonly enabled: number;
  /** As JSON; null for none. */
  readonly ratelimits: string | null;
  /** Packed; null for any address. */
  readonly allowed_ips: Uint8Array | null;
  /** The key that owns the allowance; null for this key itself. */
  readonly allowance_ref: number | null;
  readonly managed_by: ManagedBy;
  /** Id of the person who created it; null for a key. */
  readonly created_by: string | null;
  /** Who holds it, where another key created it; null: the person who created it, or the key itself. */
  readonly holder: string | null;
  /** As JSON; null for none. */
  readonly permissions: string | null;
  /** Names, as JSON; null for none. */
  readonly roles: string | null;
};

/** A row of `keys`. */
export type KeyRow = NewKeyRow & {
  readonly rotated_at: number | null;
  readonly revoked_at: number | null;
  readonly deleted: number;
  readonly purge_at: number | null;
};

/** The columns that a verification, or a request with the key, needs. */
export type VerifiedKeyRow = Omit<
  KeyRow,
  "digest" | "last4" | "created_at" | "rotated_at" | "managed_by" | "created_by" | "holder"
>;

/** The last use of a key, as a row of `key_uses`. */
export interface KeyUseRow {
  at: number;
  ip: string | null;
  ua: string | null;
}

/** The columns that decide whether a list shows a key: none of those that may be large. */
export type ListedKey = Pick<KeyRow, "ref" | "account_ref" | "project_ref" | "purge_at" | "created_at">;

/** The columns that a revocation needs. `scopes` is empty for keys that are no credentials of this API. */
export type RevocableKey = Pick<
  KeyRow,
  "ref" | "account_ref" | "project_ref" | "purge_at" | "digest" | "prefix" | "scopes"
>;

/** A scan through keys, newest first, along one index. `Scope` selects an account, project or owner. */
export interface KeyWalk<Scope> {
  /** The `created_at` of the oldest of the newest `rows` keys before a time; 0 when there are fewer. */
  readonly endOfScan: (query: Scope & { before: number; rows: number }) => number;
  /** The newest keys from `scanEnd` until just before `before`. `environment`: null for any. */
  readonly page: (
    query: Scope & { before: number; scanEnd: number; environment: string | null; limit: number },
  ) => ListedKey[];
}

/** What identifies the bucket of a rate limit. */
export type LimitPlace = {
  readonly account_ref: number;
  /** Null: an owner's keys share it. */
  readonly key_ref: number | null;
  /** Of a shared one; null: of keys of the account. */
  readonly project_ref: number | null;
  /** Of a shared one. */
  readonly owner_id: string | null;
  readonly name: string;
};

/** The bucket of a rate limit, as a row of `key_limit_levels`. */
export type LimitLevelRow = {
  readonly ref: number;
  /** In parts of a token, of which `duration_ms` make one. */
  readonly level: number;
  readonly tokens: number;
  readonly duration_ms: number;
  readonly filled_at: number;
  readonly full_at: number;
};

type Named = Record<string, string | number | null>;

/** `index` is named, since SQLite would choose the account's index for a range of times, and read all of its keys. */
function walk<Scope extends Named>(db: Database, index: string, scope: string): KeyWalk<Scope> {
  const where = `FROM keys INDEXED BY ${index} WHERE ${scope} AND deleted = 0 AND created_at < $before`;
  return {
    endOfScan: db.number<[Named]>(
      `SELECT created_at AS n ${where} ORDER BY created_at DESC LIMIT 1 OFFSET $rows - 1`,
    ),
    page: db.all<ListedKey, [Named]>(
      `SELECT ref, account_ref, project_ref, purge_at, created_at ${where} AND created_at >= $scanEnd AND ($environment IS NULL OR environment = $environment) ORDER BY created_at DESC LIMIT $limit`,
    ),
  };
}

/** A key that is about to be removed, with what identifies it in memory. */
export type RemovableKey = Pick<KeyRow, "ref" | "digest" | "allowance_ref">;

/** Uses of a key in one hour, with one outcome. */
export interface HourRow {
  readonly hour: number;
  readonly outcome: number;
  readonly count: number;
}

const SELECT =
  "SELECT ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, owner_id, meter_id, enabled, ratelimits, allowed_ips, allowance_ref, rotated_at, revoked_at, deleted, purge_at, managed_by, created_by, holder, permissions, roles FROM keys";
const REVOCABLE =
  "SELECT ref, account_ref, project_ref, purge_at, digest, prefix, CASE WHEN prefix = 'sm' THEN scopes ELSE '[]' END AS scopes FROM keys";
const NOT_REVOKED = "revoked_at IS NULL AND deleted = 0";

/** Counts keys that are not revoked among the first `scannedMax`, up to `countedMax`: revoked ones remain for a time. */
function countOfUnrevoked(condition: string): string {
  return `SELECT count(*) AS n FROM (SELECT 1 FROM (SELECT revoked_at FROM keys WHERE ${condition} AND deleted = 0
    LIMIT ?) WHERE revoked_at IS NULL LIMIT ?)`;
}

export type KeyStore = ReturnType<typeof keyStore>;

/** The SQL statements of managed keys. */
export function keyStore(db: Database) {
  return {
    /** Includes removed keys with stored usage: a new key must not inherit it. */
    highestRef: db.number(
      "SELECT max(n) AS n FROM (SELECT max(ref) AS n FROM keys UNION ALL SELECT max(key_ref) FROM key_hours)",
    ),
    insert: db.change<[row: NewKeyRow]>(
      "INSERT INTO keys (ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, owner_id, meter_id, enabled, ratelimits, allowed_ips, allowance_ref, deleted, managed_by, created_by, holder, permissions, roles) VALUES ($ref, $id, $account_ref, $project_ref, $project_id, $digest, $prefix, $last4, $name, $scopes, $environment, $metadata, $created_at, $expires_at, $owner_id, $meter_id, $enabled, $ratelimits, $allowed_ips, $allowance_ref, 0, $managed_by, $created_by, $holder, $permissions, $roles)",
    ),
    /** Includes keys of deleted projects. */
    withDigest: db.lookUp<VerifiedKeyRow, [digest: Uint8Array]>(
      "SELECT ref, id, account_ref, project_ref, project_id, prefix, name, scopes, environment, metadata, expires_at, revoked_at, deleted, purge_at, owner_id, meter_id, enabled, ratelimits, allowed_ips, allowance_ref, permissions, roles FROM keys WHERE digest = ?",
    ),
    /** Includes keys of deleted projects, and keys that are about to be purged. */
    storedWithDigest: db.lookUp<
      RemovableKey & Pick<KeyRow, "id" | "account_ref" | "project_ref" | "deleted" | "purge_at">,
      [digest: Uint8Array]
    >(
      "SELECT ref, id, account_ref, project_ref, digest, allowance_ref, deleted, purge_at FROM keys WHERE digest = ?",
    ),
    withId: db.one<KeyRow, [id: Uint8Array]>(`${SELECT} WHERE id = ? AND deleted = 0`),
    withRef: db.one<Pick<KeyRow, "id" | "name">, [ref: number]>("SELECT id, name FROM keys WHERE ref = ?"),
    rowOf: db.one<KeyRow, [ref: number]>(`${SELECT} WHERE ref = ?`),
    ofAccount: walk<{ accountRef: number }>(db, "keys_by_account", "account_ref = $accountRef"),
    ofProject: walk<{ accountRef: number; projectRef: number }>(
      db,
      "keys_by_project",
      "project_ref = $projectRef AND account_ref = $accountRef",
    ),
    ofOwner: walk<{ accountRef: number; ownerId: string }>(
      db,
      "keys_by_owner",
      "owner_id = $ownerId AND account_ref = $accountRef",
    ),
    ofCreator: walk<{ accountRef: number; createdBy: string }>(
      db,
      "keys_by_creator",
      "created_by = $createdBy AND created_by IS NOT NULL AND account_ref = $accountRef",
    ),
    /** Keys of a creator that are not revoked. */
    revocableOfCreator: db.all<
      RevocableKey & Pick<KeyRow, "id">,
      [accountRef: number, createdBy: string, limit: number]
    >(
      `${REVOCABLE.replace("SELECT ref,", "SELECT ref, id,")} WHERE account_ref = ? AND created_by = ? AND ${NOT_REVOKED} LIMIT ?`,
    ),
    /** Keys that are not revoked. */
    revocableOfOwner: db.all<RevocableKey, [accountRef: number, ownerId: string, limit: number]>(
      `${REVOCABLE} WHERE account_ref = ? AND owner_id = ? AND ${NOT_REVOKED} LIMIT ?`,
    ),
    revocableOfOwnerIn: db.all<
      RevocableKey,
      [accountRef: number, ownerId: string, projectRef: number, limit: number]
    >(`${REVOCABLE} WHERE account_ref = ? AND owner_id = ? AND project_ref = ? AND ${NOT_REVOKED} LIMIT ?`),
    /** 1 for a key that is not revoked and whose project is not deleted. */
    isRevocable: db.number<[ref: number]>(`SELECT count(*) AS n FROM keys WHERE ref = ? AND ${NOT_REVOKED}`),
    metadataOf: db.one<Pick<KeyRow, "metadata">, [ref: number]>("SELECT metadata FROM keys WHERE ref = ?"),
    newestOf: db.number<[accountRef: number]>(
      "SELECT max(created_at) AS n FROM keys WHERE account_ref = ? AND deleted = 0",
    ),
    update: db.change<[row: KeyRow]>(
      "UPDATE keys SET name = $name, scopes = $scopes, environment = $environment, metadata = $metadata, expires_at = $expires_at, owner_id = $owner_id, meter_id = $meter_id, enabled = $enabled, ratelimits = $ratelimits, allowed_ips = $allowed_ips, permissions = $permissions, roles = $roles WHERE ref = $ref",
    ),
    /** Keys of an account that count toward its tier's limit. */
    tierCountOf: db.number<[accountRef: number]>(
      "SELECT count AS n FROM account_counts WHERE account_ref = ? AND kind = 'keys'",
    ),
    expiringBetween: db.number<[accountRef: number, from: number, to: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM keys WHERE account_ref = ? AND purge_at IS NULL AND expires_at IS NOT NULL AND expires_at > ? AND expires_at <= ? LIMIT ?)",
    ),
    /** Keys of a project among the next `scannedMax` of its account that expire. */
    expiringInProject: db.number<
      [accountRef: number, from: number, to: number, scannedMax: number, projectRef: number]
    >(
      "SELECT count(*) AS n FROM (SELECT project_ref FROM keys WHERE account_ref = ? AND purge_at IS NULL AND expires_at IS NOT NULL AND expires_at > ? AND expires_at <= ? ORDER BY expires_at LIMIT ?) WHERE project_ref = ?",
    ),
    countOfProject: db.number<[projectRef: number, scannedMax: number, countedMax: number]>(
      countOfUnrevoked("project_ref = ?"),
    ),
    /** Keys of an account that belong to no project. */
    countOfAccount: db.number<[accountRef: number, scannedMax: number, countedMax: number]>(
      countOfUnrevoked("project_ref IS NULL AND account_ref = ?"),
    ),
    ...lifecycleStatements(db),
    ...useStatements(db),
    ...allowanceStatements(db),
    ...limitStatements(db),
  };
}

/** Revocation, rotation, expiry and removal. */
function lifecycleStatements(db: Database) {
  return {
    setRevoked: db.change<[revokedAt: number, purgeAt: number, ref: number]>(
      "UPDATE keys SET revoked_at = ?, purge_at = ? WHERE ref = ?",
    ),
    setRotated: db.change<[rotatedAt: number, expiresAt: number, ref: number]>(
      "UPDATE keys SET rotated_at = ?, expires_at = ? WHERE ref = ?",
    ),
    /** Expired keys without a time of purge, earliest expiry first. */
    expired: db.all<RemovableKey, [accountRef: number, now: number, limit: number]>(
      "SELECT ref, digest, allowance_ref FROM keys WHERE account_ref = ? AND purge_at IS NULL AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?",
    ),
    setPurgeAt: db.change<[purgeAt: number, ref: number]>("UPDATE keys SET purge_at = ? WHERE ref = ?"),
    /** Includes revoked keys. */
    batchOfProject: db.all<RemovableKey, [projectRef: number, limit: number]>(
      "SELECT ref, digest, allowance_ref FROM keys WHERE project_ref = ? AND deleted = 0 LIMIT ?",
    ),
    /** Clears a key except for what verify needs until it is purged. */
    empty: db.change<[purgeAt: number, ref: number]>(
      "UPDATE keys SET deleted = 1, purge_at = coalesce(purge_at, ?), name = '', environment = NULL, metadata = NULL, owner_id = NULL, meter_id = NULL, ratelimits = NULL, allowed_ips = NULL, created_by = NULL, holder = NULL, permissions = NULL, roles = NULL WHERE ref = ?",
    ),
    /** Keys of an account, revoked ones included; then those of deleted projects. */
    batchOfAccount: db.all<RemovableKey, [accountRef: number, limit: number]>(
      "SELECT ref, digest, allowance_ref FROM keys INDEXED BY keys_by_account WHERE account_ref = ? AND deleted = 0 LIMIT ?",
    ),
    emptiedOfAccount: db.all<RemovableKey, [accountRef: number, limit: number]>(
      "SELECT ref, digest, allowance_ref FROM keys INDEXED BY keys_emptied WHERE account_ref = ? AND deleted = 1 LIMIT ?",
    ),
    purgeable: db.all<RemovableKey, [now: number, limit: number]>(
      "SELECT ref, digest, allowance_ref FROM keys WHERE purge_at <= ? LIMIT ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM keys WHERE ref = ?"),
  };
}

function useStatements(db: Database) {
  return {
    /** Rotated keys share their allowance with the first one. */
    holder: db.one<Pick<KeyRow, "ref" | "created_by" | "allowance_ref" | "holder">, [ref: number]>(
      "SELECT ref, created_by, allowance_ref, holder FROM keys WHERE ref = ?",
    ),
    use: db.one<KeyUseRow, [ref: number]>("SELECT at, ip, ua FROM key_uses WHERE key_ref = ?"),
    /** An `ip` or `ua` of null keeps the stored one. */
    saveUse: db.change<[ref: number, at: number, ip: string | null, ua: string | null]>(
      "INSERT INTO key_uses (key_ref, at, ip, ua) VALUES (?, ?, ?, ?) ON CONFLICT (key_ref) DO UPDATE SET at = excluded.at, ip = coalesce(excluded.ip, ip), ua = coalesce(excluded.ua, ua)",
    ),
    removeUse: db.change<[ref: number]>("DELETE FROM key_uses WHERE key_ref = ?"),
    addUsage: db.change<[ref: number, hour: number, outcome: number, count: number]>(
      "INSERT INTO key_hours (key_ref, hour, outcome, count) VALUES (?, ?, ?, ?) ON CONFLICT (key_ref, hour, outcome) DO UPDATE SET count = count + excluded.count",
    ),
    usage: db.all<HourRow, [ref: number, from: number, to: number]>(
      "SELECT hour, outcome, count FROM key_hours WHERE key_ref = ? AND hour >= ? AND hour < ? ORDER BY hour",
    ),
    removeUsageOf: db.change<[ref: number, limit: number]>(
      "DELETE FROM key_hours WHERE (key_ref, hour, outcome) IN (SELECT key_ref, hour, outcome FROM key_hours WHERE key_ref = ? LIMIT ?)",
    ),
    removeUsage: db.change<[beforeHour: number, limit: number]>(
      "DELETE FROM key_hours WHERE (key_ref, hour, outcome) IN (SELECT key_ref, hour, outcome FROM key_hours WHERE hour < ? LIMIT ?)",
    ),
  };
}

function allowanceStatements(db: Database) {
  return {
    allowance: db.one<AllowanceRow, [ref: number]>(
      "SELECT remaining, every, amount, day, refilled_at FROM key_allowances WHERE ref = ?",
    ),
    setAllowance: db.change<[row: AllowanceRow & { readonly ref: number }]>(
      "INSERT OR REPLACE INTO key_allowances (ref, remaining, every, amount, day, refilled_at) VALUES ($ref, $remaining, $every, $amount, $day, $refilled_at)",
    ),
    /** `refilled_at` never decreases: setting the clock back must not repeat a refill. */
    setRemaining: db.change<[remaining: number, refilledAt: number, ref: number]>(
      "UPDATE key_allowances SET remaining = ?, refilled_at = max(refilled_at, ?) WHERE ref = ?",
    ),
    removeAllowance: db.change<[ref: number]>("DELETE FROM key_allowances WHERE ref = ?"),
    /** Removes an allowance that no key uses any more. */
    removeUnusedAllowance: db.change<[ref: number]>(
      "DELETE FROM key_allowances WHERE ref = ?1 AND NOT EXISTS (SELECT 1 FROM keys WHERE ref = ?1 AND deleted = 0) AND NOT EXISTS (SELECT 1 FROM keys WHERE allowance_ref = ?1 AND deleted = 0)",
    ),
  };
}

function limitStatements(db: Database) {
  return {
    highestLimitLevel: db.number("SELECT max(ref) AS n FROM key_limit_levels"),
    limitLevel: db.one<LimitLevelRow, [place: LimitPlace]>(
      "SELECT ref, level, tokens, duration_ms, filled_at, full_at FROM key_limit_levels WHERE key_ref IS $key_ref AND project_ref IS $project_ref AND account_ref = $account_ref AND owner_id IS $owner_id AND name = $name",
    ),
    /** Writes the level of a bucket, unless the key that has used it is removed. */
    saveLimitLevel: db.change<[row: LimitLevelRow & LimitPlace & { readonly used_by: number }]>(
      "INSERT INTO key_limit_levels (ref, account_ref, key_ref, project_ref, owner_id, name, level, tokens, duration_ms, filled_at, full_at) SELECT $ref, $account_ref, $key_ref, $project_ref, $owner_id, $name, $level, $tokens, $duration_ms, $filled_at, $full_at WHERE EXISTS (SELECT 1 FROM keys WHERE ref = $used_by AND deleted = 0) ON CONFLICT (ref) DO UPDATE SET level = excluded.level, tokens = excluded.tokens, duration_ms = excluded.duration_ms, filled_at = excluded.filled_at, full_at = excluded.full_at",
    ),
    removeLimitLevel: db.change<[ref: number]>("DELETE FROM key_limit_levels WHERE ref = ?"),
    /** Removes the levels of a key, unless keys that rotations have made still use them. */
    removeUnusedLimitLevels: db.change<[ref: number]>(
      "DELETE FROM key_limit_levels WHERE key_ref = ?1 AND NOT EXISTS (SELECT 1 FROM keys WHERE ref = ?1 AND deleted = 0) AND NOT EXISTS (SELECT 1 FROM keys WHERE allowance_ref = ?1 AND deleted = 0)",
    ),
    removeLimitLevelsOfProject: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM key_limit_levels WHERE ref IN (SELECT ref FROM key_limit_levels WHERE key_ref IS NULL AND project_ref = ? LIMIT ?)",
    ),
    removeLimitLevelsOfAccount: db.change<[accountRef: number, limit: number]>(
      "DELETE FROM key_limit_levels WHERE ref IN (SELECT ref FROM key_limit_levels WHERE account_ref = ? LIMIT ?)",
    ),
    removeFullLimitLevels: db.change<[now: number, limit: number]>(
      "DELETE FROM key_limit_levels WHERE ref IN (SELECT ref FROM key_limit_levels WHERE full_at <= ? LIMIT ?)",
    ),
  };
}
