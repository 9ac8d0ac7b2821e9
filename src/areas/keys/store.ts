import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `keys`, as it is made. */
export type NewKeyRow = {
  readonly ref: number;
  readonly id: Uint8Array;
  readonly account_ref: number;
  readonly project_ref: number | null;
  readonly project_id: string | null;
  readonly digest: Uint8Array;
  readonly prefix: string;
  readonly last4: string;
  readonly name: string;
  readonly scopes: string;
  readonly environment: string | null;
  readonly metadata: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
};

/** A row of `keys`. */
export type KeyRow = NewKeyRow & {
  readonly rotated_at: number | null;
  readonly revoked_at: number | null;
  readonly deleted: number;
  readonly purge_at: number | null;
};

/** A row of `key_uses`. */
export interface KeyUseRow {
  readonly at: number;
  readonly ip: string | null;
  readonly ua: string | null;
}

/** A key that is about to go, as far as memory must know it. */
export type LeavingKey = Pick<KeyRow, "ref" | "digest">;

const COLUMNS =
  "ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, rotated_at, revoked_at, deleted, purge_at";

function prepare(db: Database) {
  return {
    insert: db.command<[NewKeyRow]>(
      "INSERT INTO keys (ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, deleted) VALUES ($ref, $id, $account_ref, $project_ref, $project_id, $digest, $prefix, $last4, $name, $scopes, $environment, $metadata, $created_at, $expires_at, 0)",
    ),
    byDigest: db.query<KeyRow, [Uint8Array]>(`SELECT ${COLUMNS} FROM keys WHERE digest = ?`),
    byId: db.query<KeyRow, [Uint8Array]>(`SELECT ${COLUMNS} FROM keys WHERE id = ? AND deleted = 0`),
    ofAccount: db.query<KeyRow, [number, number, number]>(
      `SELECT ${COLUMNS} FROM keys WHERE account_ref = ? AND created_at < ? AND deleted = 0 ORDER BY created_at DESC LIMIT ?`,
    ),
    ofProject: db.query<KeyRow, [number, number, number, number]>(
      `SELECT ${COLUMNS} FROM keys WHERE project_ref = ? AND account_ref = ? AND created_at < ? AND deleted = 0 ORDER BY created_at DESC LIMIT ?`,
    ),
    newest: db.query<{ at: number | null }, [number]>(
      "SELECT max(created_at) AS at FROM keys WHERE account_ref = ? AND deleted = 0",
    ),
    revoke: db.command<[number, number, number]>(
      "UPDATE keys SET revoked_at = ?, purge_at = ? WHERE ref = ?",
    ),
    rotate: db.command<[number, number, number]>(
      "UPDATE keys SET rotated_at = ?, expires_at = ? WHERE ref = ?",
    ),
    ended: db.query<LeavingKey, [number, number, number]>(
      "SELECT ref, digest FROM keys WHERE account_ref = ? AND purge_at IS NULL AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?",
    ),
    setPurgeAt: db.command<[number, number]>("UPDATE keys SET purge_at = ? WHERE ref = ?"),
    countProject: db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM keys WHERE project_ref = ? AND revoked_at IS NULL AND deleted = 0",
    ),
    countAccount: db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM keys WHERE project_ref IS NULL AND account_ref = ? AND revoked_at IS NULL AND deleted = 0",
    ),
    someOfProject: db.query<LeavingKey, [number, number]>(
      "SELECT ref, digest FROM keys WHERE project_ref = ? AND deleted = 0 LIMIT ?",
    ),
    empty: db.command<[number, number]>(
      "UPDATE keys SET deleted = 1, purge_at = coalesce(purge_at, ?), name = '', environment = NULL, metadata = NULL WHERE ref = ?",
    ),
    purgeable: db.query<LeavingKey, [number, number]>(
      "SELECT ref, digest FROM keys WHERE purge_at <= ? LIMIT ?",
    ),
    delete: db.command<[number]>("DELETE FROM keys WHERE ref = ?"),
    use: db.query<KeyUseRow, [number]>("SELECT at, ip, ua FROM key_uses WHERE key_ref = ?"),
    saveUse: db.command<[number, number, string | null, string | null]>(
      "INSERT INTO key_uses (key_ref, at, ip, ua) VALUES (?, ?, ?, ?) ON CONFLICT (key_ref) DO UPDATE SET at = excluded.at, ip = coalesce(excluded.ip, ip), ua = coalesce(excluded.ua, ua)",
    ),
    deleteUse: db.command<[number]>("DELETE FROM key_uses WHERE key_ref = ?"),
    highest: db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM keys"),
  };
}

/** All SQL of managed keys. */
export class KeyStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = prepare(db);
  }

  /** The largest reference given so far; 0 when there is none. */
  highestRef(): number {
    return this.sql.highest.get()?.ref ?? 0;
  }

  insert(tx: Tx, row: NewKeyRow): void {
    this.sql.insert.run(tx, row);
  }

  /** The key of a secret, also one of a deleted project. */
  withDigest(digest: Uint8Array): KeyRow | null {
    return this.sql.byDigest.get(digest);
  }

  withId(id: Uint8Array): KeyRow | null {
    return this.sql.byId.get(id);
  }

  /** Keys made before a moment, newest first: of an account, or of one of its projects. */
  before(createdAt: number, limit: number, accountRef: number, projectRef: number | null): KeyRow[] {
    return projectRef === null
      ? this.sql.ofAccount.all(accountRef, createdAt, limit)
      : this.sql.ofProject.all(projectRef, accountRef, createdAt, limit);
  }

  /** When the account's newest key was made. */
  newestOf(accountRef: number): number | null {
    return this.sql.newest.get(accountRef)?.at ?? null;
  }

  setRevoked(tx: Tx, ref: number, purgeAt: number): void {
    this.sql.revoke.run(tx, tx.now, purgeAt, ref);
  }

  setRotated(tx: Tx, ref: number, expiresAt: number): void {
    this.sql.rotate.run(tx, tx.now, expiresAt, ref);
  }

  /** Keys of an account that have ended and whose records have no end yet, the earliest first. */
  ended(accountRef: number, now: number, limit: number): LeavingKey[] {
    return this.sql.ended.all(accountRef, now, limit);
  }

  setPurgeAt(tx: Tx, ref: number, purgeAt: number): void {
    this.sql.setPurgeAt.run(tx, purgeAt, ref);
  }

  /** Keys of one project that are not revoked. */
  countOfProject(projectRef: number): number {
    return this.sql.countProject.get(projectRef)?.count ?? 0;
  }

  /** Keys of an account, of no project, that are not revoked. */
  countOfAccount(accountRef: number): number {
    return this.sql.countAccount.get(accountRef)?.count ?? 0;
  }

  /** Some keys of a project, revoked ones included. */
  ofProjectSome(projectRef: number, limit: number): LeavingKey[] {
    return this.sql.someOfProject.all(projectRef, limit);
  }

  /** Keeps of a key only what verify must know until it is purged. */
  setDeleted(tx: Tx, ref: number, purgeAt: number): void {
    this.sql.empty.run(tx, purgeAt, ref);
    this.sql.deleteUse.run(tx, ref);
  }

  /** Some keys whose retention has ended. */
  purgeable(now: number, limit: number): LeavingKey[] {
    return this.sql.purgeable.all(now, limit);
  }

  remove(tx: Tx, ref: number): void {
    this.sql.delete.run(tx, ref);
    this.sql.deleteUse.run(tx, ref);
  }

  use(ref: number): KeyUseRow | null {
    return this.sql.use.get(ref);
  }

  /** Writes a use; what it does not know stays as it was. */
  saveUse(tx: Tx, ref: number, at: number, ip: string | null, ua: string | null): void {
    this.sql.saveUse.run(tx, ref, at, ip, ua);
  }
}
