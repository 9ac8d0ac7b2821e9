-- When the next attempt of a delivery is. The column stands before what the delivery sends: SQLite walks over a body, page by page, to
-- read a column behind it.
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
  next_attempt_at INTEGER,          -- of a delivery that is being retried; null for those whose last attempt was before this migration
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
