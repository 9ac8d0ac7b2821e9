-- What users set about a monitor. Written when they change it, never by a check.
-- References are never given twice: checks of a deleted monitor stay until they are old.
CREATE TABLE monitors (
  ref                   INTEGER PRIMARY KEY AUTOINCREMENT,
  monitor_id            BLOB    NOT NULL, -- UUID
  account_ref           INTEGER NOT NULL,
  project_ref           INTEGER NOT NULL,
  url                   TEXT    NOT NULL,
  method                TEXT    NOT NULL,
  headers               BLOB,             -- sealed JSON
  body                  TEXT,
  timeout_ms            INTEGER NOT NULL,
  interval_ms           INTEGER NOT NULL,
  consecutive_threshold INTEGER NOT NULL,
  cooldown_ms           INTEGER NOT NULL,
  webhook_url           TEXT,
  email_alert           INTEGER NOT NULL,
  notify_recovery       INTEGER NOT NULL,
  active                INTEGER NOT NULL,
  version               INTEGER NOT NULL, -- rises with every change: the result of a check belongs to one
  created_at            INTEGER NOT NULL, -- epoch ms
  updated_at            INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX monitors_by_id ON monitors (monitor_id);
CREATE INDEX monitors_by_project ON monitors (project_ref, ref);

-- What the checks found: one small row per monitor, all that a check rewrites.
CREATE TABLE monitor_states (
  monitor_ref          INTEGER PRIMARY KEY,
  project_ref          INTEGER NOT NULL,
  status               INTEGER NOT NULL, -- 1 up, 2 down, 3 unknown
  latency_ms           INTEGER,
  last_checked_at      INTEGER,          -- epoch ms
  consecutive_failures INTEGER NOT NULL,
  told_at              INTEGER,          -- epoch ms of the last notification that it is down, while it is
  last_check           INTEGER NOT NULL, -- sequence of the last check; 0: none
  hour                 INTEGER NOT NULL, -- the hour (epoch ms) that the next two count; earlier ones are in monitor_hours
  hour_checks          INTEGER NOT NULL,
  hour_up              INTEGER NOT NULL
) STRICT;
CREATE INDEX monitor_states_by_status ON monitor_states (project_ref, status, monitor_ref);

-- Every check, appended. Each names its monitor's previous one, so that a history is a walk by primary key.
CREATE TABLE monitor_checks (
  sequence        INTEGER PRIMARY KEY,
  monitor_ref     INTEGER NOT NULL,
  previous        INTEGER NOT NULL, -- 0 for a monitor's first check
  checked_at      INTEGER NOT NULL, -- epoch ms
  up              INTEGER NOT NULL,
  manual          INTEGER NOT NULL,
  latency_ms      INTEGER NOT NULL,
  response_status INTEGER,
  error           TEXT
) STRICT;

-- Checks per monitor and hour, for the uptime.
CREATE TABLE monitor_hours (
  monitor_ref INTEGER NOT NULL,
  hour        INTEGER NOT NULL, -- epoch ms of its beginning
  checks      INTEGER NOT NULL,
  up          INTEGER NOT NULL,
  PRIMARY KEY (monitor_ref, hour)
) STRICT, WITHOUT ROWID;

-- Projects whose monitors have stopped; an entry stays until their rows are gone.
CREATE TABLE monitor_stopped_projects (project_ref INTEGER PRIMARY KEY) STRICT;
