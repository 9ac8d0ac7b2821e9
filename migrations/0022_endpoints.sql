-- Where messages of a project are delivered to.
CREATE TABLE relay_endpoints (
  ref             INTEGER PRIMARY KEY,
  endpoint_id     TEXT    NOT NULL UNIQUE,
  account_ref     INTEGER NOT NULL,
  project_ref     INTEGER NOT NULL,
  name            TEXT,
  terms           TEXT    NOT NULL, -- JSON: what a user sets, but its name, headers and state
  headers         BLOB,             -- sealed JSON; null when there are none
  state           INTEGER NOT NULL, -- 1 live, 2 paused, 3 disabled, 4 deleted: the row goes after its deliveries
  disabled_reason TEXT,
  breaker         INTEGER NOT NULL, -- 0 closed, 1 open, 2 open with a probe under way
  failures        INTEGER NOT NULL, -- attempts that failed since the last that did not
  failing_since   INTEGER,          -- epoch ms, of the first of them
  probes          INTEGER NOT NULL, -- that failed since the breaker opened
  next_probe_at   INTEGER,
  last_status     INTEGER,          -- of the last attempt that failed
  last_error      TEXT,
  holds           INTEGER NOT NULL, -- 1: it has rows in relay_parked
  noticed_at      INTEGER,          -- when it was last said that a delivery failed
  unnoticed       INTEGER NOT NULL, -- deliveries that have failed since
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX relay_endpoints_by_project ON relay_endpoints (project_ref, ref);
CREATE UNIQUE INDEX relay_endpoints_by_name ON relay_endpoints (project_ref, name) WHERE name IS NOT NULL;
CREATE INDEX relay_endpoints_deleted ON relay_endpoints (updated_at) WHERE state = 4;

-- What deliveries to an endpoint are signed with.
CREATE TABLE relay_endpoint_secrets (
  owner_ref  INTEGER NOT NULL, -- the endpoint
  number     INTEGER NOT NULL, -- rises with each rotation
  sealed     BLOB    NOT NULL, -- whsec_…
  created_at INTEGER NOT NULL, -- epoch ms
  expires_at INTEGER,          -- null: the newest, which has no end
  PRIMARY KEY (owner_ref, number)
) STRICT, WITHOUT ROWID;

-- Messages, each with a delivery for every endpoint that took it: those from first_ref on.
CREATE TABLE relay_messages (
  ref              INTEGER PRIMARY KEY,
  project_ref      INTEGER NOT NULL,
  message_id       TEXT    NOT NULL,
  event_type       TEXT    NOT NULL,
  channels         TEXT,             -- JSON; null when there are none
  payload          TEXT,             -- JSON; null once its time is over
  deduplication_id TEXT,
  first_ref        INTEGER NOT NULL,
  deliveries       INTEGER NOT NULL,
  scheduled_for    INTEGER NOT NULL, -- epoch ms
  created_at       INTEGER NOT NULL,
  purge_at         INTEGER NOT NULL  -- when to look whether payload, and then the row, may go
) STRICT;
CREATE INDEX relay_messages_by_project ON relay_messages (project_ref, ref);
CREATE INDEX relay_messages_by_id ON relay_messages (project_ref, message_id, ref);
CREATE INDEX relay_messages_by_deduplication ON relay_messages (project_ref, deduplication_id, ref) WHERE deduplication_id IS NOT NULL;
CREATE INDEX relay_messages_by_purge ON relay_messages (purge_at);

ALTER TABLE relays ADD COLUMN endpoint_ref INTEGER; -- of a delivery of kind 3; null for the others
ALTER TABLE relays ADD COLUMN message_ref INTEGER;  -- the same
CREATE INDEX relays_by_endpoint ON relays (endpoint_ref, status, ref) WHERE endpoint_ref IS NOT NULL;

-- Due deliveries that wait until their endpoint takes some again. They have no job.
CREATE TABLE relay_parked (
  endpoint_ref INTEGER NOT NULL,
  relay_ref    INTEGER NOT NULL,
  PRIMARY KEY (endpoint_ref, relay_ref)
) STRICT, WITHOUT ROWID;
