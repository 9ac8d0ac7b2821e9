import type { Database } from "../../../kernel/storage/database.ts";

export type LinkRow = {
  readonly id: number;
  readonly key_digest: Uint8Array;
  readonly project_ref: number;
  readonly project_id: string;
  readonly owner_id: string;
  /** JSON; null for none. */
  readonly event_types: string | null;
  readonly expires_at: number;
};

type NewLink = Omit<LinkRow, "id"> & { readonly token_hash: Uint8Array; readonly created_at: number };

export type PortalStore = ReturnType<typeof portalStore>;

/** All SQL of portal links. */
export function portalStore(db: Database) {
  return {
    insert: db.change<[row: NewLink]>(
      `INSERT INTO relay_portal_links (token_hash, key_digest, project_ref, project_id, owner_id, event_types, created_at, expires_at)
       VALUES ($token_hash, $key_digest, $project_ref, $project_id, $owner_id, $event_types, $created_at, $expires_at)`,
    ),
    withToken: db.one<LinkRow, [tokenHash: Uint8Array]>(
      "SELECT id, key_digest, project_ref, project_id, owner_id, event_types, expires_at FROM relay_portal_links WHERE token_hash = ?",
    ),
    exists: db.number<[id: number]>("SELECT EXISTS (SELECT 1 FROM relay_portal_links WHERE id = ?) AS n"),
    /** Removes the links of a customer except the newest `kept`. @returns the number of removed links. */
    removeOfOwner: db.change<[projectRef: number, ownerId: string, kept: number]>(
      `DELETE FROM relay_portal_links WHERE id IN (SELECT id FROM relay_portal_links WHERE project_ref = ? AND owner_id = ?
       ORDER BY id DESC LIMIT -1 OFFSET ?)`,
    ),
    /** The number of links of a customer that have not expired. */
    valid: db.number<[projectRef: number, ownerId: string, now: number]>(
      "SELECT count(*) AS n FROM relay_portal_links WHERE project_ref = ? AND owner_id = ? AND expires_at > ?",
    ),
    removeExpired: db.change<[now: number, rowsMax: number]>(
      "DELETE FROM relay_portal_links WHERE id IN (SELECT id FROM relay_portal_links WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)",
    ),
    removeOfProject: db.change<[projectRef: number, rowsMax: number]>(
      "DELETE FROM relay_portal_links WHERE id IN (SELECT id FROM relay_portal_links WHERE project_ref = ? LIMIT ?)",
    ),
  };
}
