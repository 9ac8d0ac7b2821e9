import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { LockMode } from "./domain.ts";

/** A row of `locks`. */
interface LockRow {
  fencing_token: number;
  project_ref: number;
  key: string;
  token: string;
  expires_at: number;
  mode: LockMode;
}

/** Setting that holds the end of the reserved range of fencing tokens. */
export const FENCING_RESERVED = "lock_fencing_reserved_through";

/** Fencing tokens reserved per write. A start of the server skips the rest of the range. */
export const FENCING_TOKENS_RESERVED = 1_000;

export type LockStore = ReturnType<typeof lockStore>;

/** All SQL of locks. */
export function lockStore(db: Database) {
  return {
    /** Locks that expire after `now`. */
    unexpired: db.all<LockRow, [now: number]>(
      "SELECT fencing_token, project_ref, key, token, expires_at, mode FROM locks WHERE expires_at > ?",
    ),
    // Hot path: positional parameters are faster than named ones.
    insert: db.change<
      [
        fencingToken: number,
        projectRef: number,
        key: string,
        token: string,
        expiresAt: number,
        mode: LockMode,
      ]
    >(
      "INSERT INTO locks (fencing_token, project_ref, key, token, expires_at, mode) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    refresh: db.change<[expiresAt: number, fencingToken: number]>(
      "UPDATE locks SET expires_at = ? WHERE fencing_token = ?",
    ),
    remove: db.change<[fencingToken: number]>("DELETE FROM locks WHERE fencing_token = ?"),
    removeExpired: db.change<[now: number, fencingTokenMax: number]>(
      "DELETE FROM locks WHERE expires_at <= ? AND fencing_token <= ?",
    ),
    /** Limits the expiry of all locks to `latest`. */
    capExpiry: db.change<[latest: number, latest: number, fencingTokenMax: number]>(
      "UPDATE locks SET expires_at = ? WHERE expires_at > ? AND fencing_token <= ?",
    ),
    /** No token above this one has been issued. */
    fencingReservedThrough: db.number(`SELECT value AS n FROM settings WHERE name = '${FENCING_RESERVED}'`),
    reserveFencing: db.change<[through: number]>(
      `INSERT OR REPLACE INTO settings (name, value) VALUES ('${FENCING_RESERVED}', ?)`,
    ),
  };
}

/**
 * The increasing sequence of fencing tokens. All locks share it: a sequence per lock would have to be stored for every key
 * ever used.
 *
 * The database stores the end of a reserved range. The first grant above it reserves the next range in its own transaction,
 * so that no token is issued twice, even after a crash.
 */
export class FencingSequence {
  private last: number;
  private reservedThrough: number;

  constructor(private readonly store: LockStore) {
    this.reservedThrough = store.fencingReservedThrough();
    this.last = this.reservedThrough;
  }

  /** Returns the next token. A rolled-back unit of work does not return its token to the sequence. */
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
