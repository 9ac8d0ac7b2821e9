-- Links by which a customer of an account manages its own endpoints: each stands for the key that created it.
CREATE TABLE relay_portal_links (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  token_hash  BLOB    NOT NULL UNIQUE, -- SHA-256 of the token in the link
  key_digest  BLOB    NOT NULL,        -- SHA-256 of the key
  project_ref INTEGER NOT NULL,
  project_id  TEXT    NOT NULL,
  owner_id    TEXT    NOT NULL,        -- the customer
  event_types TEXT,                    -- JSON: what the page offers; null: nothing
  created_at  INTEGER NOT NULL,        -- epoch milliseconds, as the other
  expires_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX relay_portal_links_by_owner ON relay_portal_links (project_ref, owner_id, id);
CREATE INDEX relay_portal_links_by_end ON relay_portal_links (expires_at);

-- The customer who acted by such a link.
ALTER TABLE audit_log ADD COLUMN owner_id TEXT;
