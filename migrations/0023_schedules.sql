-- What a project sends at the times of a cron expression. One with a next run has a job of kind relay.schedules under its ref.
CREATE TABLE relay_schedules (
  ref             INTEGER PRIMARY KEY AUTOINCREMENT,
  schedule_id     TEXT    NOT NULL UNIQUE,
  account_ref     INTEGER NOT NULL,
  project_ref     INTEGER NOT NULL,
  name            TEXT,
  cron            TEXT    NOT NULL,
  time_zone       TEXT    NOT NULL,
  target_url      TEXT,             -- null: a message
  method          TEXT    NOT NULL,
  event_type      TEXT,             -- of a message
  headers         BLOB,             -- sealed JSON; null when there are none
  payload         TEXT    NOT NULL, -- JSON, as it is sent
  state           TEXT    NOT NULL, -- live, paused
  missed          TEXT    NOT NULL, -- once, skip
  overlap         TEXT    NOT NULL, -- allow, skip
  starts_at       INTEGER,          -- epoch ms
  ends_at         INTEGER,
  retry_schedule  TEXT,             -- JSON, the waits as they were given; null: the usual ones
  next_run_at     INTEGER,          -- null: paused, or over
  last_run_at     INTEGER,
  last_relay_id   TEXT,
  last_message_id TEXT,
  runs            INTEGER NOT NULL DEFAULT 0,
  skipped         INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX relay_schedules_of_project ON relay_schedules (project_ref, ref);
CREATE UNIQUE INDEX relay_schedules_by_name ON relay_schedules (project_ref, name) WHERE name IS NOT NULL;

ALTER TABLE relays ADD COLUMN schedule_id TEXT; -- whose run it is
