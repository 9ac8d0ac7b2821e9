-- People of an account, who log in as themselves.
CREATE TABLE people (
  ref          INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT    NOT NULL UNIQUE,
  account_ref  INTEGER NOT NULL,
  email        TEXT    NOT NULL,
  email_folded TEXT    NOT NULL,           -- in lower case: compared without case
  name         TEXT,
  role         TEXT,                       -- null: roles in single projects
  accepted_at  INTEGER,                    -- epoch milliseconds, as the others; null: invited
  disabled     INTEGER NOT NULL DEFAULT 0,
  from_file    INTEGER NOT NULL DEFAULT 0, -- 1: role and projects are those of the configuration file
  invited_by   TEXT,                       -- id of a person; null: a key, the configuration or a provider
  created_at   INTEGER NOT NULL,
  seen_at      INTEGER
) STRICT;
CREATE INDEX people_by_account ON people (account_ref);
CREATE UNIQUE INDEX people_by_email ON people (account_ref, email_folded);
-- An address that a proxy or a link has proven may be that of people of several accounts.
CREATE INDEX people_by_address ON people (email_folded);
CREATE TRIGGER people_counted AFTER INSERT ON people BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'people', 1)
    ON CONFLICT (account_ref, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER people_discounted AFTER DELETE ON people BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'people';
END;

-- Roles in single projects.
CREATE TABLE person_projects (
  person_ref  INTEGER NOT NULL,
  project_ref INTEGER NOT NULL,
  role        TEXT    NOT NULL,
  PRIMARY KEY (person_ref, project_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX person_projects_by_project ON person_projects (project_ref);

-- Who a person is for an OpenID Connect provider.
CREATE TABLE person_identities (
  ref            INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE,
  person_ref     INTEGER NOT NULL,
  issuer         TEXT    NOT NULL,
  subject        TEXT    NOT NULL,
  sent_auth_time INTEGER NOT NULL DEFAULT 0, -- 1: the provider says when the person logged in there
  created_at     INTEGER NOT NULL,
  used_at        INTEGER
) STRICT;
CREATE UNIQUE INDEX person_identities_by_person ON person_identities (person_ref, issuer);
CREATE INDEX person_identities_by_subject ON person_identities (issuer, subject);

CREATE TABLE passkeys (
  ref           INTEGER PRIMARY KEY,
  id            TEXT    NOT NULL UNIQUE,
  person_ref    INTEGER NOT NULL,
  credential_id TEXT    NOT NULL UNIQUE, -- base64url
  public_key    BLOB    NOT NULL,        -- COSE
  counter       INTEGER NOT NULL,
  transports    TEXT    NOT NULL,        -- JSON
  relying_party TEXT    NOT NULL,        -- host
  name          TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  used_at       INTEGER
) STRICT;
CREATE INDEX passkeys_by_person ON passkeys (person_ref);

-- Links that log a person in once.
CREATE TABLE person_links (
  token_hash   BLOB    PRIMARY KEY, -- SHA-256 of the token in the link
  person_ref   INTEGER NOT NULL,
  kind         TEXT    NOT NULL,    -- invitation, login, email
  browser_hash BLOB,                -- SHA-256 of the cookie of the browser that alone may use it; null: any
  expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX person_links_by_person ON person_links (person_ref, kind);
CREATE INDEX person_links_by_end ON person_links (expires_at);

-- A session stands for a key or for a person.
CREATE TABLE sessions_of_all (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  token_hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the cookie
  account_ref      INTEGER NOT NULL,
  key_digest       BLOB,                    -- SHA-256 of the key; null for a person
  person_ref       INTEGER,                 -- null for a key
  method           TEXT    NOT NULL,        -- how the browser logged in
  proof            TEXT,                    -- JSON: what the login has proven, which opens other accounts too
  created_at       INTEGER NOT NULL,        -- epoch milliseconds, as the others
  authenticated_at INTEGER NOT NULL,        -- of the login or the last step-up
  seen_at          INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL,
  ip               TEXT,
  user_agent       TEXT
) STRICT;
INSERT INTO sessions_of_all
  SELECT id, token_hash, account_ref, key_digest, NULL, 'key', NULL, created_at, created_at, seen_at, expires_at, ip, user_agent
  FROM sessions;
-- Numbers of sessions are never used again: the audit log names them.
DELETE FROM sqlite_sequence WHERE name = 'sessions_of_all';
INSERT INTO sqlite_sequence (name, seq) SELECT 'sessions_of_all', seq FROM sqlite_sequence WHERE name = 'sessions';
DROP TABLE sessions;
ALTER TABLE sessions_of_all RENAME TO sessions;
CREATE INDEX sessions_by_account ON sessions (account_ref);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE INDEX sessions_by_person ON sessions (person_ref) WHERE person_ref IS NOT NULL;

-- Who created a key: id of a person; null for a key.
ALTER TABLE keys ADD COLUMN created_by TEXT;
CREATE INDEX keys_by_creator ON keys (account_ref, created_by, created_at) WHERE created_by IS NOT NULL AND deleted = 0;

-- People in the audit log, as they were called then.
ALTER TABLE audit_log ADD COLUMN person_id TEXT;
ALTER TABLE audit_log ADD COLUMN person_email TEXT;
ALTER TABLE audit_log ADD COLUMN person_name TEXT;
ALTER TABLE audit_log ADD COLUMN session_id INTEGER;
