import type { LoginMethod } from "../../kernel/callers/caller.ts";
import type { Database } from "../../kernel/storage/database.ts";

export type SessionRow = {
  readonly id: number;
  /** Null for a person. */
  readonly key_digest: Uint8Array | null;
  /** Null for a key. */
  readonly person_ref: number | null;
  readonly method: LoginMethod;
  /** JSON of what the login has proven; null for nothing beyond the key or the person. */
  readonly proof: string | null;
  readonly authenticated_at: number;
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

/** A session of a person as a list shows it. */
export type ListedSession = RemovedSession &
  Pick<SessionRow, "method" | "seen_at" | "expires_at"> & {
    readonly created_at: number;
    readonly ip: string | null;
    readonly user_agent: string | null;
  };

const COLUMNS = "id, key_digest, person_ref, method, proof, authenticated_at, seen_at, expires_at";

/** What identifies a session in memory that is removed. */
type RemovedSession = { readonly id: number; readonly token_hash: Uint8Array };

export type SessionStore = ReturnType<typeof sessionStore>;

/** The SQL statements of browser sessions and login links. */
export function sessionStore(db: Database) {
  return {
    instanceId: db.one<{ readonly value: string }>("SELECT value FROM settings WHERE name = 'instance_id'"),
    withToken: db.one<SessionRow, [tokenHash: Uint8Array]>(
      `SELECT ${COLUMNS} FROM sessions WHERE token_hash = ?`,
    ),
    withId: db.one<SessionRow, [id: number]>(`SELECT ${COLUMNS} FROM sessions WHERE id = ?`),
    insert: db.change<[NewSession]>(
      "INSERT INTO sessions (token_hash, account_ref, key_digest, person_ref, method, proof, created_at, authenticated_at, seen_at, expires_at, ip, user_agent) VALUES ($token_hash, $account_ref, $key_digest, $person_ref, $method, $proof, $now, $authenticated_at, $now, $expires_at, $ip, $user_agent)",
    ),
    setLastUse: db.change<[seenAt: number, id: number]>("UPDATE sessions SET seen_at = ? WHERE id = ?"),
    remove: db.change<[id: number]>("DELETE FROM sessions WHERE id = ?"),
    /** Gives a session a new cookie after another login of its person. */
    renew: db.change<
      [
        {
          readonly id: number;
          readonly token_hash: Uint8Array;
          readonly method: LoginMethod;
          readonly proof: string | null;
          readonly now: number;
          readonly expires_at: number;
        },
      ]
    >(
      "UPDATE sessions SET token_hash = $token_hash, method = $method, proof = $proof, authenticated_at = $now, seen_at = $now, expires_at = $expires_at WHERE id = $id",
    ),
    /** The sessions of a person, newest first. */
    ofPerson: db.all<ListedSession, [personRef: number]>(
      "SELECT id, token_hash, method, created_at, seen_at, expires_at, ip, user_agent FROM sessions WHERE person_ref = ? ORDER BY id DESC",
    ),
    /** A person's sessions except the newest `newest`. */
    exceptNewestOfPerson: db.all<RemovedSession, [personRef: number, newest: number]>(
      "SELECT id, token_hash FROM sessions WHERE person_ref = ? ORDER BY id DESC LIMIT -1 OFFSET ?",
    ),
    /** Sessions of keys of an account except the newest `newest`. */
    exceptNewestOfKeys: db.all<RemovedSession, [accountRef: number, newest: number]>(
      "SELECT id, token_hash FROM sessions WHERE account_ref = ? AND person_ref IS NULL ORDER BY id DESC LIMIT -1 OFFSET ?",
    ),
    /** Sessions of keys of all accounts. */
    ofKeys: db.all<RemovedSession & { readonly account_ref: number }, []>(
      "SELECT id, token_hash, account_ref FROM sessions WHERE person_ref IS NULL",
    ),
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
