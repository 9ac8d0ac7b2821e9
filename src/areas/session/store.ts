import type { Database } from "../../kernel/storage/database.ts";

export type SessionRow = {
  readonly id: number;
  readonly key_digest: Uint8Array;
  readonly seen_at: number;
  readonly expires_at: number;
};

type NewSession = Omit<SessionRow, "id" | "seen_at"> & {
  readonly token_hash: Uint8Array;
  readonly account_ref: number;
  readonly now: number;
  readonly ip: string | null;
  readonly user_agent: string | null;
};

/** What identifies a session in memory that is removed. */
type RemovedSession = { readonly id: number; readonly token_hash: Uint8Array };

export type SessionStore = ReturnType<typeof sessionStore>;

/** The SQL statements of browser sessions and login links. */
export function sessionStore(db: Database) {
  return {
    instanceId: db.one<{ readonly value: string }>("SELECT value FROM settings WHERE name = 'instance_id'"),
    withToken: db.one<SessionRow, [tokenHash: Uint8Array]>(
      "SELECT id, key_digest, seen_at, expires_at FROM sessions WHERE token_hash = ?",
    ),
    insert: db.change<[NewSession]>(
      "INSERT INTO sessions (token_hash, account_ref, key_digest, created_at, seen_at, expires_at, ip, user_agent) VALUES ($token_hash, $account_ref, $key_digest, $now, $now, $expires_at, $ip, $user_agent)",
    ),
    setLastUse: db.change<[seenAt: number, id: number]>("UPDATE sessions SET seen_at = ? WHERE id = ?"),
    remove: db.change<[id: number]>("DELETE FROM sessions WHERE id = ?"),
    /** An account's sessions except the newest `newest`. */
    exceptNewest: db.all<RemovedSession, [accountRef: number, newest: number]>(
      "SELECT id, token_hash FROM sessions WHERE account_ref = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
    ),
    removeOfAccount: db.change<[accountRef: number, rowsMax: number]>(
      "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE account_ref = ? LIMIT ?)",
    ),
    /** Removes expired sessions, which no lookup returns any more. */
    removeExpired: db.change<[now: number, rowsMax: number]>(
      "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= ? LIMIT ?)",
    ),
    /** The digest of a link's key. */
    link: db.one<{ readonly key_digest: Uint8Array; readonly expires_at: number }, [tokenHash: Uint8Array]>(
      "SELECT key_digest, expires_at FROM login_links WHERE token_hash = ?",
    ),
    insertLink: db.change<[tokenHash: Uint8Array, keyDigest: Uint8Array, expiresAt: number]>(
      "INSERT INTO login_links (token_hash, key_digest, expires_at) VALUES (?, ?, ?)",
    ),
    removeLink: db.change<[tokenHash: Uint8Array]>("DELETE FROM login_links WHERE token_hash = ?"),
    removeExpiredLinks: db.change<[now: number]>("DELETE FROM login_links WHERE expires_at <= ?"),
  };
}
