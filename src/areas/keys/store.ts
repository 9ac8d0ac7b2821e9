import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `keys`. */
export interface KeyRow {
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
  readonly rotated_at: number | null;
  readonly revoked_at: number | null;
  readonly deleted: number;
  readonly purge_at: number | null;
}

/** A row of `key_uses`. */
export interface KeyUseRow {
  readonly at: number;
  readonly ip: string | null;
  readonly ua: string | null;
}

/** A key on its way out: what memory must learn of it. */
export interface LeavingKey {
  readonly ref: number;
  readonly digest: Uint8Array;
}

const COLUMNS =
  "ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, rotated_at, revoked_at, deleted, purge_at";

/** All SQL of managed keys. */
export class KeyStore {
  private readonly insertKey;
  private readonly byDigest;
  private readonly byId;
  private readonly ofAccount;
  private readonly ofProject;
  private readonly newest;
  private readonly updateRevoked;
  private readonly updateRotated;
  private readonly selectEnded;
  private readonly updatePurgeAt;
  private readonly countProject;
  private readonly countAccount;
  private readonly selectProject;
  private readonly updateDeleted;
  private readonly selectPurged;
  private readonly deleteKey;
  private readonly selectUse;
  private readonly upsertUse;
  private readonly deleteUse;
  private readonly highest;

  constructor(db: Database) {
    this.insertKey = db.command<
      [
        number,
        Uint8Array,
        number,
        number | null,
        string | null,
        Uint8Array,
        string,
        string,
        string,
        string,
        string | null,
        string | null,
        number,
        number | null,
      ]
    >(
      "INSERT INTO keys (ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, environment, metadata, created_at, expires_at, deleted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
    );
    this.byDigest = db.query<KeyRow, [Uint8Array]>(`SELECT ${COLUMNS} FROM keys WHERE digest = ?`);
    this.byId = db.query<KeyRow, [Uint8Array]>(`SELECT ${COLUMNS} FROM keys WHERE id = ? AND deleted = 0`);
    this.ofAccount = db.query<KeyRow, [number, number, number]>(
      `SELECT ${COLUMNS} FROM keys WHERE account_ref = ? AND created_at < ? AND deleted = 0 ORDER BY created_at DESC LIMIT ?`,
    );
    this.ofProject = db.query<KeyRow, [number, number, number, number]>(
      `SELECT ${COLUMNS} FROM keys WHERE project_ref = ? AND account_ref = ? AND created_at < ? AND deleted = 0 ORDER BY created_at DESC LIMIT ?`,
    );
    this.newest = db.query<{ at: number | null }, [number]>(
      "SELECT max(created_at) AS at FROM keys WHERE account_ref = ? AND deleted = 0",
    );
    this.updateRevoked = db.command<[number, number, number]>(
      "UPDATE keys SET revoked_at = ?, purge_at = ? WHERE ref = ?",
    );
    this.updateRotated = db.command<[number, number, number]>(
      "UPDATE keys SET rotated_at = ?, expires_at = ? WHERE ref = ?",
    );
    this.selectEnded = db.query<LeavingKey, [number, number, number]>(
      "SELECT ref, digest FROM keys WHERE account_ref = ? AND purge_at IS NULL AND expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?",
    );
    this.updatePurgeAt = db.command<[number, number]>("UPDATE keys SET purge_at = ? WHERE ref = ?");
    this.countProject = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM keys WHERE project_ref = ? AND revoked_at IS NULL AND deleted = 0",
    );
    this.countAccount = db.query<{ count: number }, [number]>(
      "SELECT count(*) AS count FROM keys WHERE project_ref IS NULL AND account_ref = ? AND revoked_at IS NULL AND deleted = 0",
    );
    this.selectProject = db.query<LeavingKey, [number, number]>(
      "SELECT ref, digest FROM keys WHERE project_ref = ? AND deleted = 0 LIMIT ?",
    );
    this.updateDeleted = db.command<[number, number]>(
      "UPDATE keys SET deleted = 1, purge_at = coalesce(purge_at, ?), name = '', environment = NULL, metadata = NULL WHERE ref = ?",
    );
    this.selectPurged = db.query<LeavingKey, [number, number]>(
      "SELECT ref, digest FROM keys WHERE purge_at <= ? LIMIT ?",
    );
    this.deleteKey = db.command<[number]>("DELETE FROM keys WHERE ref = ?");
    this.selectUse = db.query<KeyUseRow, [number]>("SELECT at, ip, ua FROM key_uses WHERE key_ref = ?");
    this.upsertUse = db.command<[number, number, string | null, string | null]>(
      "INSERT INTO key_uses (key_ref, at, ip, ua) VALUES (?, ?, ?, ?) ON CONFLICT (key_ref) DO UPDATE SET at = excluded.at, ip = coalesce(excluded.ip, ip), ua = coalesce(excluded.ua, ua)",
    );
    this.deleteUse = db.command<[number]>("DELETE FROM key_uses WHERE key_ref = ?");
    this.highest = db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM keys");
  }

  /** The largest reference given so far; 0 when there is none. */
  highestRef(): number {
    return this.highest.get()?.ref ?? 0;
  }

  insert(tx: Tx, row: Omit<KeyRow, "rotated_at" | "revoked_at" | "deleted" | "purge_at">): void {
    this.insertKey.run(
      tx,
      row.ref,
      row.id,
      row.account_ref,
      row.project_ref,
      row.project_id,
      row.digest,
      row.prefix,
      row.last4,
      row.name,
      row.scopes,
      row.environment,
      row.metadata,
      row.created_at,
      row.expires_at,
    );
  }

  /** The key of a secret, also one of a deleted project. */
  withDigest(digest: Uint8Array): KeyRow | null {
    return this.byDigest.get(digest);
  }

  withId(id: Uint8Array): KeyRow | null {
    return this.byId.get(id);
  }

  /** An account's keys made before a moment, newest first. */
  ofAccountBefore(accountRef: number, createdAt: number, limit: number): KeyRow[] {
    return this.ofAccount.all(accountRef, createdAt, limit);
  }

  /** A project's keys made before a moment, newest first. */
  ofProjectBefore(accountRef: number, projectRef: number, createdAt: number, limit: number): KeyRow[] {
    return this.ofProject.all(projectRef, accountRef, createdAt, limit);
  }

  /** When the account's newest key was made. */
  newestOf(accountRef: number): number | null {
    return this.newest.get(accountRef)?.at ?? null;
  }

  setRevoked(tx: Tx, ref: number, purgeAt: number): void {
    this.updateRevoked.run(tx, tx.now, purgeAt, ref);
  }

  setRotated(tx: Tx, ref: number, expiresAt: number): void {
    this.updateRotated.run(tx, tx.now, expiresAt, ref);
  }

  /** Keys of an account that have ended and whose record nobody has let go, those that ended first before others. */
  ended(accountRef: number, now: number, limit: number): LeavingKey[] {
    return this.selectEnded.all(accountRef, now, limit);
  }

  setPurgeAt(tx: Tx, ref: number, purgeAt: number): void {
    this.updatePurgeAt.run(tx, purgeAt, ref);
  }

  /** Keys of one project that are not revoked. */
  countOfProject(projectRef: number): number {
    return this.countProject.get(projectRef)?.count ?? 0;
  }

  /** Keys of an account, of no project, that are not revoked. */
  countOfAccount(accountRef: number): number {
    return this.countAccount.get(accountRef)?.count ?? 0;
  }

  /** Some keys of a project, revoked ones included. */
  ofProjectSome(projectRef: number, limit: number): LeavingKey[] {
    return this.selectProject.all(projectRef, limit);
  }

  /** Leaves of a key what verify must know until it is purged. */
  setDeleted(tx: Tx, ref: number, purgeAt: number): void {
    this.updateDeleted.run(tx, purgeAt, ref);
    this.deleteUse.run(tx, ref);
  }

  /** Some keys whose retention has ended. */
  purgeable(now: number, limit: number): LeavingKey[] {
    return this.selectPurged.all(now, limit);
  }

  remove(tx: Tx, ref: number): void {
    this.deleteKey.run(tx, ref);
    this.deleteUse.run(tx, ref);
  }

  use(ref: number): KeyUseRow | null {
    return this.selectUse.get(ref);
  }

  /** Writes a use; what it does not know stays as it was. */
  saveUse(tx: Tx, ref: number, at: number, ip: string | null, ua: string | null): void {
    this.upsertUse.run(tx, ref, at, ip, ua);
  }
}
