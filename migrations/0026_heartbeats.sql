-- Monitors that ask nobody: they wait for pings.
ALTER TABLE monitors ADD COLUMN type TEXT NOT NULL DEFAULT 'http'; -- http, heartbeat

-- What users set about a heartbeat beyond what every monitor has. Never written by a ping.
CREATE TABLE heartbeats (
  monitor_ref INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL,
  ping_id     BLOB    NOT NULL, -- random UUID: who knows it may ping
  slug        TEXT,
  period_ms   INTEGER,          -- either this
  schedule    TEXT,             -- or this: a cron expression, read in the zone tz
  tz          TEXT,
  grace_ms    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX heartbeats_by_ping_id ON heartbeats (ping_id);
CREATE UNIQUE INDEX heartbeats_by_slug ON heartbeats (project_ref, slug) WHERE slug IS NOT NULL;

-- What the pings say: one small row per heartbeat, all that a ping rewrites. Moments are epoch ms.
CREATE TABLE heartbeat_states (
  monitor_ref      INTEGER PRIMARY KEY,
  pings            INTEGER NOT NULL, -- how many have come
  last_ping_at     INTEGER,
  started_at       INTEGER,          -- of the run under way
  started_rid      BLOB,             -- UUID that its end will name
  last_duration_ms INTEGER,
  waits_since      INTEGER,          -- the last success, or when it was switched on again after it
  expected_at      INTEGER,          -- the next success, counted from there
  missed_at        INTEGER,          -- when that is missing; null while nothing is expected
  overran_at       INTEGER,          -- when the run under way has taken too long
  repeat_at        INTEGER,          -- when it is told again that a ping is missing
  looked_at        INTEGER           -- when its job looks at these; null without one
) STRICT;

-- The last pings of each: the id is the heartbeat's reference times 100, and which of 100 places in turn.
CREATE TABLE heartbeat_pings (
  id          INTEGER PRIMARY KEY,
  number      INTEGER NOT NULL, -- rises with each ping
  at          INTEGER NOT NULL, -- epoch ms
  kind        TEXT    NOT NULL, -- success, fail, start, log
  exit        INTEGER,
  duration_ms INTEGER,
  rid         BLOB,
  ip          TEXT,
  body        TEXT
) STRICT;

-- What a project's pings by slug begin with. Looked up by its SHA-256, shown from what is sealed.
CREATE TABLE heartbeat_ping_keys (
  project_ref INTEGER PRIMARY KEY,
  account_ref INTEGER NOT NULL,
  digest      BLOB    NOT NULL,
  sealed      BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX heartbeat_ping_keys_by_digest ON heartbeat_ping_keys (digest);
