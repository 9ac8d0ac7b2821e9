-- Managed keys. A key of a deleted project stays, without its name and data, until its time to be purged: until
-- then it is answered as one of a deleted project.
CREATE TABLE keys (
  ref         INTEGER PRIMARY KEY,
  id          BLOB    NOT NULL UNIQUE, -- UUID
  account_ref INTEGER NOT NULL,
  project_ref INTEGER,                 -- null: a key of the account, which works in the default project
  project_id  TEXT,
  digest      BLOB    NOT NULL UNIQUE, -- SHA-256 of the secret
  prefix      TEXT    NOT NULL,
  last4       TEXT    NOT NULL,
  name        TEXT    NOT NULL,
  scopes      TEXT    NOT NULL,        -- JSON
  environment TEXT,
  metadata    TEXT,                    -- JSON
  created_at  INTEGER NOT NULL,        -- epoch ms, strictly increasing within an account
  expires_at  INTEGER,
  rotated_at  INTEGER,                 -- when its successor was made
  revoked_at  INTEGER,
  deleted     INTEGER NOT NULL,        -- 1: of a deleted project
  purge_at    INTEGER                  -- when the row is removed
) STRICT;
CREATE INDEX keys_by_account ON keys (account_ref, created_at) WHERE deleted = 0;
-- Lists of a project, and counts without a look at the rows.
CREATE INDEX keys_by_project ON keys (project_ref, account_ref, created_at, revoked_at) WHERE deleted = 0;
CREATE INDEX keys_by_purge ON keys (purge_at) WHERE purge_at IS NOT NULL;

-- When a key was last used, written in the background: narrow rows of their own, since busy keys change them often.
CREATE TABLE key_uses (
  key_ref INTEGER PRIMARY KEY,
  at      INTEGER NOT NULL, -- epoch ms
  ip      TEXT,
  ua      TEXT
) STRICT;

-- The last change in the project, in any area; at most a minute behind.
ALTER TABLE projects ADD COLUMN last_activity_at INTEGER;
CREATE INDEX projects_deleted ON projects (ref) WHERE deleted_at IS NOT NULL;
