import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `locks`. */
export interface LockRow {
  fencing_token: number;
  project_ref: number;
  key: string;
  token: string;
  expires_at: number;
}

const FENCING_RESERVED = "lock_fencing_reserved_through";

/** All SQL of locks. */
export class LockStore {
  private readonly heldAt;
  private readonly insertLock;
  private readonly updateExpiry;
  private readonly deleteLock;
  private readonly deleteExpired;
  private readonly shortenExpiry;
  private readonly reserved;
  private readonly saveReserved;

  constructor(db: Database) {
    this.heldAt = db.query<LockRow, [number]>(
      "SELECT fencing_token, project_ref, key, token, expires_at FROM locks WHERE expires_at > ?",
    );
    this.insertLock = db.command<[number, number, string, string, number]>(
      "INSERT INTO locks (fencing_token, project_ref, key, token, expires_at) VALUES (?, ?, ?, ?, ?)",
    );
    this.updateExpiry = db.command<[number, number]>(
      "UPDATE locks SET expires_at = ? WHERE fencing_token = ?",
    );
    this.deleteLock = db.command<[number]>("DELETE FROM locks WHERE fencing_token = ?");
    this.deleteExpired = db.command<[number, number]>(
      "DELETE FROM locks WHERE expires_at <= ? AND fencing_token <= ?",
    );
    this.shortenExpiry = db.command<[number, number, number]>(
      "UPDATE locks SET expires_at = ? WHERE expires_at > ? AND fencing_token <= ?",
    );
    this.reserved = db.query<{ value: number }>(
      `SELECT value FROM settings WHERE name = '${FENCING_RESERVED}'`,
    );
    this.saveReserved = db.command<[number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FENCING_RESERVED}', ?)`,
    );
  }

  /** The locks that have not expired at a time. */
  held(now: number): LockRow[] {
    return this.heldAt.all(now);
  }

  insert(tx: Tx, row: LockRow): void {
    this.insertLock.run(tx, row.fencing_token, row.project_ref, row.key, row.token, row.expires_at);
  }

  refresh(tx: Tx, fencingToken: number, expiresAt: number): void {
    this.updateExpiry.run(tx, expiresAt, fencingToken);
  }

  remove(tx: Tx, fencingToken: number): void {
    this.deleteLock.run(tx, fencingToken);
  }

  /** Removes what had expired at `now`, of the grants up to a fencing token. */
  removeExpired(tx: Tx, now: number, fencingTokenMax: number): void {
    this.deleteExpired.run(tx, now, fencingTokenMax);
  }

  /** Lets nothing last beyond `latest`, of the grants up to a fencing token. */
  shorten(tx: Tx, latest: number, fencingTokenMax: number): void {
    this.shortenExpiry.run(tx, latest, latest, fencingTokenMax);
  }

  /** No fencing token beyond this one has been given. */
  fencingReservedThrough(): number {
    return this.reserved.get()?.value ?? 0;
  }

  reserveFencing(tx: Tx, through: number): void {
    this.saveReserved.run(tx, through);
  }
}
