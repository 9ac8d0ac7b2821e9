-- Who changed what. Each row is written in the transaction of its change; names are copied, since they outlive what they name.
CREATE TABLE audit_log (
  sequence    INTEGER PRIMARY KEY AUTOINCREMENT, -- without gaps, but for the oldest, which go when their time is over
  at          INTEGER NOT NULL,                  -- epoch milliseconds
  account_ref INTEGER,                           -- whose log it stands in; null: the server's own
  subject_ref INTEGER,                           -- the account that was acted on, where that is another one
  project_id  TEXT,
  action      TEXT    NOT NULL,                  -- the operation's name
  summary     TEXT    NOT NULL,
  actor_type  TEXT    NOT NULL,                  -- key, session, cli, system, public
  key_id      BLOB,                              -- UUID of a managed key
  key_name    TEXT,
  user_id     TEXT,
  target_type TEXT    NOT NULL,
  target_id   TEXT    NOT NULL,
  was         TEXT,                              -- JSON: changed fields alone, without secrets
  became      TEXT,                              -- the same
  truncated   INTEGER NOT NULL,                  -- 1: was or became would have been too long
  ip          TEXT,
  user_agent  TEXT,
  request_id  BLOB                               -- UUID
) STRICT;
CREATE INDEX audit_log_by_account ON audit_log (account_ref);
CREATE INDEX audit_log_by_subject ON audit_log (subject_ref) WHERE subject_ref IS NOT NULL;
CREATE INDEX audit_log_by_project ON audit_log (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX audit_log_by_target ON audit_log (account_ref, target_type, target_id);
