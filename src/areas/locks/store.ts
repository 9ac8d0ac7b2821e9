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

/** The name that files have for the last fencing token that may have been handed out. */
export const FENCING_RESERVED = "lock_fencing_reserved_through";

/** Fencing tokens reserved at a time: one write for so many grants. A start skips what is left of them. */
export const FENCING_TOKENS_RESERVED = 1_000;

function prepare(db: Database) {
  return {
    held: db.query<LockRow, [number]>(
      "SELECT fencing_token, project_ref, key, token, expires_at FROM locks WHERE expires_at > ?",
    ),
    insert: db.command<[number, number, string, string, number]>(
      "INSERT INTO locks (fencing_token, project_ref, key, token, expires_at) VALUES (?, ?, ?, ?, ?)",
    ),
    refresh: db.command<[number, number]>("UPDATE locks SET expires_at = ? WHERE fencing_token = ?"),
    delete: db.command<[number]>("DELETE FROM locks WHERE fencing_token = ?"),
    deleteExpired: db.command<[number, number]>(
      "DELETE FROM locks WHERE expires_at <= ? AND fencing_token <= ?",
    ),
    shorten: db.command<[number, number, number]>(
      "UPDATE locks SET expires_at = ? WHERE expires_at > ? AND fencing_token <= ?",
    ),
    reserved: db.query<{ value: number }>(`SELECT value FROM settings WHERE name = '${FENCING_RESERVED}'`),
    reserve: db.command<[number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FENCING_RESERVED}', ?)`,
    ),
  };
}

/** All SQL of locks. */
export class LockStore {
  private readonly sql;

  constructor(db: Database) {
    this.sql = prepare(db);
  }

  /** The locks that have not expired at a time. */
  held(now: number): LockRow[] {
    return this.sql.held.all(now);
  }

  insert(tx: Tx, row: LockRow): void {
    this.sql.insert.run(tx, row.fencing_token, row.project_ref, row.key, row.token, row.expires_at);
  }

  refresh(tx: Tx, fencingToken: number, expiresAt: number): void {
    this.sql.refresh.run(tx, expiresAt, fencingToken);
  }

  remove(tx: Tx, fencingToken: number): void {
    this.sql.delete.run(tx, fencingToken);
  }

  /** Removes what had expired at `now`, of the grants up to a fencing token. */
  removeExpired(tx: Tx, now: number, fencingTokenMax: number): void {
    this.sql.deleteExpired.run(tx, now, fencingTokenMax);
  }

  /** Lets nothing last beyond `latest`, of the grants up to a fencing token. */
  shorten(tx: Tx, latest: number, fencingTokenMax: number): void {
    this.sql.shorten.run(tx, latest, latest, fencingTokenMax);
  }

  /** No token beyond this one has been given. */
  fencingReservedThrough(): number {
    return this.sql.reserved.get()?.value ?? 0;
  }

  reserveFencing(tx: Tx, through: number): void {
    this.sql.reserve.run(tx, through);
  }
}

/**
 * The sequence of fencing tokens, which only rises. All locks share one, so that a free lock can be forgotten: a count
 * per lock would have to be kept for every key that was ever used.
 *
 * The file holds the end of a reserved range. The first grant beyond it moves it on in its own transaction, so no
 * token is given twice, even after a crash.
 */
export class FencingSequence {
  private last: number;
  private reservedThrough: number;

  constructor(private readonly store: LockStore) {
    this.reservedThrough = store.fencingReservedThrough();
    this.last = this.reservedThrough;
  }

  /** The next token. One that a rolled-back unit took is not given again. */
  next(tx: Tx): number {
    if (this.last >= this.reservedThrough) this.reserve(tx);
    this.last += 1;
    return this.last;
  }

  private reserve(tx: Tx): void {
    const before = this.reservedThrough;
    this.reservedThrough = this.last + FENCING_TOKENS_RESERVED;
    tx.onRollback(() => {
      this.reservedThrough = before;
    });
    this.store.reserveFencing(tx, this.reservedThrough);
  }
}
