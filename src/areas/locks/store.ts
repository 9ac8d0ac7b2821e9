import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** A row of `locks`. */
interface LockRow {
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

export type LockStore = ReturnType<typeof lockStore>;

/** All SQL of locks. */
export function lockStore(db: Database) {
  return {
    /** The locks that have not expired at a time. */
    held: db.all<LockRow, [now: number]>(
      "SELECT fencing_token, project_ref, key, token, expires_at FROM locks WHERE expires_at > ?",
    ),
    // Every grant runs it: positions are bound quicker than names.
    insert: db.change<
      [fencingToken: number, projectRef: number, key: string, token: string, expiresAt: number]
    >("INSERT INTO locks (fencing_token, project_ref, key, token, expires_at) VALUES (?, ?, ?, ?, ?)"),
    refresh: db.change<[expiresAt: number, fencingToken: number]>(
      "UPDATE locks SET expires_at = ? WHERE fencing_token = ?",
    ),
    remove: db.change<[fencingToken: number]>("DELETE FROM locks WHERE fencing_token = ?"),
    removeExpired: db.change<[now: number, fencingTokenMax: number]>(
      "DELETE FROM locks WHERE expires_at <= ? AND fencing_token <= ?",
    ),
    /** Lets nothing last beyond a time. */
    shorten: db.change<[latest: number, latest: number, fencingTokenMax: number]>(
      "UPDATE locks SET expires_at = ? WHERE expires_at > ? AND fencing_token <= ?",
    ),
    /** No token beyond this one has been given. */
    fencingReservedThrough: db.number(`SELECT value AS n FROM settings WHERE name = '${FENCING_RESERVED}'`),
    reserveFencing: db.change<[through: number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FENCING_RESERVED}', ?)`,
    ),
  };
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
