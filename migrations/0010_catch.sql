CREATE TABLE catch_buckets (
  ref            INTEGER PRIMARY KEY,
  id             TEXT    NOT NULL UNIQUE,
  account_ref    INTEGER NOT NULL,
  project_ref    INTEGER NOT NULL,
  target_url     TEXT    NOT NULL,
  provider       INTEGER NOT NULL, -- 0 none, 1 stripe, 2 github, 3 shopify, 4 svix
  signing_secret BLOB,             -- sealed under the master key
  live           INTEGER NOT NULL,
  pending        INTEGER NOT NULL, -- events by status, so that nobody has to count them
  delivered      INTEGER NOT NULL,
  failed         INTEGER NOT NULL,
  created_at     INTEGER NOT NULL, -- epoch ms
  updated_at     INTEGER NOT NULL,
  deleted_at     INTEGER           -- set: what is left of it is being removed
) STRICT;
CREATE INDEX catch_buckets_by_project ON catch_buckets (project_ref, ref);
CREATE INDEX catch_buckets_by_account ON catch_buckets (account_ref) WHERE deleted_at IS NULL;

-- What is small of the events, together by bucket: a page of a list is a walk along this table.
CREATE TABLE catch_events (
  bucket_ref      INTEGER NOT NULL,
  sequence        INTEGER NOT NULL, -- rises with the time of receipt; its text is the event's id
  status          INTEGER NOT NULL, -- 0 pending, 1 delivered, 2 failed
  provider        INTEGER NOT NULL, -- as above
  verification    INTEGER NOT NULL, -- 0 none, 1 valid, 2 invalid
  received_at     INTEGER NOT NULL, -- epoch ms
  attempts        INTEGER NOT NULL,
  response_status INTEGER,
  error           TEXT,
  delivered_at    INTEGER,
  retry_at        INTEGER,          -- set while a retry is scheduled
  payload_bytes   INTEGER NOT NULL, -- bounds how much one unit of work removes
  PRIMARY KEY (bucket_ref, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX catch_events_by_status ON catch_events (bucket_ref, status, provider, sequence);

-- What is large of them, written once and never changed.
CREATE TABLE catch_payloads (
  sequence INTEGER PRIMARY KEY,
  headers  TEXT NOT NULL, -- JSON
  body     BLOB NOT NULL  -- the exact bytes
) STRICT;
