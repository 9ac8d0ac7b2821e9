-- What deliveries of a project are signed with beside its account's key: the newest secret, and older ones in their grace.
CREATE TABLE relay_project_secrets (
  owner_ref  INTEGER NOT NULL, -- the project
  number     INTEGER NOT NULL, -- rises with each rotation
  sealed     BLOB    NOT NULL, -- whsec_…
  created_at INTEGER NOT NULL, -- epoch ms
  expires_at INTEGER,          -- null: the newest, which has no end
  PRIMARY KEY (owner_ref, number)
) STRICT, WITHOUT ROWID;

ALTER TABLE relays ADD COLUMN body_bytes BLOB;        -- in place of body: what is sent is no JSON
ALTER TABLE relays ADD COLUMN retry_schedule TEXT;    -- JSON, the waits as they were given; null: the usual ones
ALTER TABLE relays ADD COLUMN timeout_ms INTEGER;     -- null: the usual one
ALTER TABLE relays ADD COLUMN attempts_before INTEGER NOT NULL DEFAULT 0; -- made before it was last resent
ALTER TABLE relays ADD COLUMN failure INTEGER;        -- 1 timeout, 2 network, 3 http, 4 blocked, 5 disabled; null: not failed, or failed before this column was, without what was sent

ALTER TABLE relay_attempts ADD COLUMN request_headers TEXT;  -- JSON, secrets masked
ALTER TABLE relay_attempts ADD COLUMN response_headers TEXT; -- JSON
ALTER TABLE relay_attempts ADD COLUMN response_body BLOB;    -- how it begins
ALTER TABLE relay_attempts ADD COLUMN remote_address TEXT;

-- Ids under which a delivery is scheduled once.
CREATE TABLE relay_deduplication (
  project_ref INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  relay_ref   INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  PRIMARY KEY (project_ref, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX relay_deduplication_by_age ON relay_deduplication (created_at);

-- Resends of many. One that runs has a job of kind relay.resends.
CREATE TABLE relay_resends (
  project_ref INTEGER NOT NULL,
  resend_id   TEXT    NOT NULL,
  account_ref INTEGER NOT NULL,
  status      INTEGER NOT NULL, -- 1 running, 2 done, 3 cancelled
  filters     TEXT    NOT NULL, -- JSON
  per_second  INTEGER NOT NULL,
  after_ref   INTEGER NOT NULL, -- deliveries up to here have had their turn
  through_ref INTEGER NOT NULL, -- the last one that matched
  matched     INTEGER NOT NULL,
  more        INTEGER NOT NULL,
  resent      INTEGER NOT NULL,
  error       TEXT,
  created_at  INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (project_ref, resend_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX relay_resends_by_end ON relay_resends (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX relay_resends_running ON relay_resends (project_ref) WHERE finished_at IS NULL;
