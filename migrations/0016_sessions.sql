-- Browser sessions: a cookie stands for a key.
CREATE TABLE sessions (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  token_hash  BLOB    NOT NULL UNIQUE, -- SHA-256 of the cookie
  account_ref INTEGER NOT NULL,
  key_digest  BLOB    NOT NULL,        -- SHA-256 of the key
  created_at  INTEGER NOT NULL,        -- epoch milliseconds, as the others
  seen_at     INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  ip          TEXT,
  user_agent  TEXT
) STRICT;
CREATE INDEX sessions_by_account ON sessions (account_ref);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- Links that open a session once.
CREATE TABLE login_links (
  token_hash BLOB    PRIMARY KEY, -- SHA-256 of what stands in the link
  key_digest BLOB    NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_links_by_end ON login_links (expires_at);

-- Cookies are shared between the ports of a host: their names tell one server from another.
INSERT INTO settings (name, value) VALUES ('instance_id', lower(hex(randomblob(4))));
