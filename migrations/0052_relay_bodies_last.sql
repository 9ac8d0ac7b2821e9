-- What a delivery sends, up to 1 MiB, comes after all other columns: SQLite walks over a body, page by page, to read a column
-- behind it, so that a list of 1,000 deliveries with large bodies took seconds.
CREATE TABLE relays_ordered (
  ref             INTEGER PRIMARY KEY,
  relay_id        BLOB    NOT NULL, -- UUID; its last 40 bits are the ref, so that it needs no index
  account_ref     INTEGER NOT NULL, -- whose key signs
  project_ref     INTEGER NOT NULL,
  kind            INTEGER NOT NULL, -- 1 scheduled, 2 pulse, 3 to an endpoint
  status          INTEGER NOT NULL, -- 1 scheduled, 2 delivering, 3 delivered, 4 failed, 5 cancelled
  failure         INTEGER,          -- 1 timeout, 2 network, 3 http, 4 blocked, 5 disabled; null: not failed, or without what was sent
  attempts        INTEGER NOT NULL,
  attempts_before INTEGER NOT NULL DEFAULT 0, -- made before it was last resent
  response_status INTEGER,
  scheduled_for   INTEGER NOT NULL, -- epoch ms
  finished_at     INTEGER,
  created_at      INTEGER NOT NULL,
  endpoint_ref    INTEGER,          -- of a delivery of kind 3; null for the others
  message_ref     INTEGER,
  timeout_ms      INTEGER,          -- null: the default
  monitor_id      BLOB,             -- UUID
  schedule_id     TEXT,             -- whose run it is
  bucket_id       TEXT,             -- of the inbound event that is delivered
  event_id        TEXT,
  event           TEXT,
  method          TEXT    NOT NULL,
  target_url      TEXT    NOT NULL,
  error           TEXT,
  retry_schedule  TEXT,             -- JSON, the waits as they were given; null: the default
  destination     BLOB,             -- sealed URL and headers of an unsigned notification
  headers         BLOB,             -- sealed JSON; null when there are none, and after the end
  body            TEXT,             -- exactly what is sent; null after the end
  body_bytes      BLOB              -- in place of body: what is sent is no JSON
) STRICT;
INSERT INTO relays_ordered (ref, relay_id, account_ref, project_ref, kind, status, failure, attempts, attempts_before, response_status,
    scheduled_for, finished_at, created_at, endpoint_ref, message_ref, timeout_ms, monitor_id, schedule_id, bucket_id, event_id, event,
    method, target_url, error, retry_schedule, destination, headers, body, body_bytes)
  SELECT ref, relay_id, account_ref, project_ref, kind, status, failure, attempts, attempts_before, response_status,
    scheduled_for, finished_at, created_at, endpoint_ref, message_ref, timeout_ms, monitor_id, schedule_id, bucket_id, event_id, event,
    method, target_url, error, retry_schedule, destination, headers, body, body_bytes FROM relays ORDER BY ref;
DROP TABLE relays;
ALTER TABLE relays_ordered RENAME TO relays;
CREATE INDEX relays_by_status ON relays (project_ref, status, ref);
CREATE INDEX relays_pulse ON relays (project_ref, status, ref) WHERE kind = 2;
CREATE INDEX relays_by_end ON relays (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX relays_by_endpoint ON relays (endpoint_ref, status, ref) WHERE endpoint_ref IS NOT NULL;
CREATE INDEX relays_by_event ON relays (event_id, ref) WHERE event_id IS NOT NULL;

-- The same with messages, whose payloads have up to 1 MiB.
CREATE TABLE relay_messages_ordered (
  ref              INTEGER PRIMARY KEY,
  project_ref      INTEGER NOT NULL,
  message_id       TEXT    NOT NULL,
  event_type       TEXT    NOT NULL,
  first_ref        INTEGER NOT NULL,
  deliveries       INTEGER NOT NULL,
  scheduled_for    INTEGER NOT NULL, -- epoch ms
  created_at       INTEGER NOT NULL,
  purge_at         INTEGER NOT NULL, -- time of the next check whether payload, and then the row, can be deleted
  deduplication_id TEXT,
  owner_id         TEXT,
  schedule_id      TEXT,             -- of the schedule that sent it; scheduled_for is the time of its run
  channels         TEXT,             -- JSON; null when there are none
  payload          TEXT              -- JSON; null after its retention
) STRICT;
INSERT INTO relay_messages_ordered (ref, project_ref, message_id, event_type, first_ref, deliveries, scheduled_for, created_at, purge_at,
    deduplication_id, owner_id, schedule_id, channels, payload)
  SELECT ref, project_ref, message_id, event_type, first_ref, deliveries, scheduled_for, created_at, purge_at,
    deduplication_id, owner_id, schedule_id, channels, payload FROM relay_messages ORDER BY ref;
DROP TABLE relay_messages;
ALTER TABLE relay_messages_ordered RENAME TO relay_messages;
CREATE INDEX relay_messages_by_project ON relay_messages (project_ref, ref);
CREATE INDEX relay_messages_by_id ON relay_messages (project_ref, message_id, ref);
CREATE INDEX relay_messages_by_deduplication ON relay_messages (project_ref, deduplication_id, ref) WHERE deduplication_id IS NOT NULL;
CREATE INDEX relay_messages_by_purge ON relay_messages (purge_at);
CREATE INDEX relay_messages_by_owner ON relay_messages (project_ref, owner_id, ref) WHERE owner_id IS NOT NULL;
