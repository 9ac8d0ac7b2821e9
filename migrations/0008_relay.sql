-- Deliveries, scheduled and notifications of monitors. A delivery that waits has a job of kind relay.deliver.
CREATE TABLE relays (
  ref             INTEGER PRIMARY KEY,
  relay_id        BLOB    NOT NULL, -- UUID; its last 40 bits are the ref, so that it needs no index
  account_ref     INTEGER NOT NULL, -- whose key signs
  project_ref     INTEGER NOT NULL,
  kind            INTEGER NOT NULL, -- 1 scheduled, 2 pulse
  status          INTEGER NOT NULL, -- 1 scheduled, 2 delivering, 3 delivered, 4 failed, 5 cancelled
  event           TEXT,
  monitor_id      BLOB,             -- UUID
  target_url      TEXT    NOT NULL,
  method          TEXT    NOT NULL,
  headers         BLOB,             -- sealed JSON; null when there are none, and after the end
  body            TEXT,             -- exactly what is sent; null after the end
  attempts        INTEGER NOT NULL,
  response_status INTEGER,
  error           TEXT,
  scheduled_for   INTEGER NOT NULL, -- epoch ms
  finished_at     INTEGER,
  created_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX relays_by_status ON relays (project_ref, status, ref);
CREATE INDEX relays_pulse ON relays (project_ref, status, ref) WHERE kind = 2;
CREATE INDEX relays_by_end ON relays (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE relay_attempts (
  relay_ref       INTEGER NOT NULL,
  number          INTEGER NOT NULL, -- from 1
  started_at      INTEGER NOT NULL, -- epoch ms
  duration_ms     INTEGER NOT NULL,
  response_status INTEGER,
  error           TEXT,
  PRIMARY KEY (relay_ref, number)
) STRICT, WITHOUT ROWID;

-- Projects whose deliveries have stopped; an entry stays until their rows are gone.
CREATE TABLE relay_stopped_projects (project_ref INTEGER PRIMARY KEY) STRICT;
