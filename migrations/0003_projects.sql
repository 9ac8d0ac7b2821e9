CREATE TABLE projects (
  ref         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  account_ref INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  slug        TEXT    NOT NULL,
  description TEXT,
  is_default  INTEGER NOT NULL,
  created_at  INTEGER NOT NULL, -- epoch ms
  updated_at  INTEGER NOT NULL,
  deleted_at  INTEGER
) STRICT;
CREATE UNIQUE INDEX projects_by_slug ON projects (account_ref, slug) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX projects_default ON projects (account_ref) WHERE is_default = 1;
CREATE INDEX projects_by_account ON projects (account_ref, ref);
