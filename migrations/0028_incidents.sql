-- What has gone wrong, found by a monitor (auto) or told by people (manual).
CREATE TABLE incidents (
  ref             INTEGER PRIMARY KEY AUTOINCREMENT,
  incident_id     TEXT    NOT NULL UNIQUE,
  project_ref     INTEGER NOT NULL,
  monitor_ref     INTEGER,          -- whose outage it is; null: told by people
  title           TEXT    NOT NULL,
  impact          TEXT    NOT NULL, -- degraded, outage
  status          TEXT    NOT NULL, -- investigating, identified, monitoring, resolved
  cause           TEXT,             -- what the check said that opened it
  monitor_ids     TEXT    NOT NULL, -- JSON
  started_at      INTEGER NOT NULL, -- epoch ms
  acknowledged_at INTEGER,
  acknowledged_by TEXT,
  resolved_at     INTEGER,
  public          INTEGER NOT NULL,
  suppressed_by   TEXT              -- the parent's incident, else its monitor
) STRICT;
CREATE INDEX incidents_of_project ON incidents (project_ref, ref);
CREATE INDEX incidents_open ON incidents (project_ref, ref) WHERE resolved_at IS NULL;
CREATE UNIQUE INDEX incidents_open_of_monitor ON incidents (monitor_ref) WHERE resolved_at IS NULL AND monitor_ref IS NOT NULL;
CREATE INDEX incidents_by_end ON incidents (resolved_at) WHERE resolved_at IS NOT NULL;

-- The incidents of a monitor, also of one that is gone.
CREATE TABLE incident_monitors (
  monitor_id   TEXT    NOT NULL,
  incident_ref INTEGER NOT NULL,
  PRIMARY KEY (monitor_id, incident_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE incident_updates (
  incident_ref INTEGER NOT NULL,
  number       INTEGER NOT NULL, -- from 1
  at           INTEGER NOT NULL, -- epoch ms
  status       TEXT    NOT NULL,
  message      TEXT    NOT NULL,
  PRIMARY KEY (incident_ref, number)
) STRICT, WITHOUT ROWID;

-- Where people are told.
CREATE TABLE channels (
  ref         INTEGER PRIMARY KEY AUTOINCREMENT,
  channel_id  TEXT    NOT NULL UNIQUE,
  account_ref INTEGER NOT NULL,
  project_ref INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  config      BLOB    NOT NULL, -- sealed JSON
  is_default  INTEGER NOT NULL,
  events      TEXT    NOT NULL, -- JSON
  created_at  INTEGER NOT NULL, -- epoch ms
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX channels_of_project ON channels (project_ref, ref);

-- Monitors that tell other channels than their project's default ones.
CREATE TABLE monitor_channels (
  monitor_ref  INTEGER PRIMARY KEY,
  channel_refs TEXT NOT NULL -- JSON; those that are gone may stand in it
) STRICT;

-- Where a delivery goes and with which headers, where its URL holds a secret and target_url shows it without: sealed JSON, null after the end.
ALTER TABLE relays ADD COLUMN destination BLOB;

-- Monitors that are down already have an incident as well.
INSERT INTO incidents (incident_id, project_ref, monitor_ref, title, impact, status, monitor_ids, started_at, public)
  SELECT 'inc_' || lower(hex(randomblob(16))), monitors.project_ref, ref, coalesce(name, url) || ' is down', 'outage', 'investigating',
    json_array(lower(substr(hex(monitor_id), 1, 8) || '-' || substr(hex(monitor_id), 9, 4) || '-' || substr(hex(monitor_id), 13, 4) || '-' ||
      substr(hex(monitor_id), 17, 4) || '-' || substr(hex(monitor_id), 21))), coalesce(last_checked_at, updated_at), 0
  FROM monitors JOIN monitor_states ON monitor_ref = ref WHERE status = 2;
INSERT INTO incident_monitors SELECT monitor_ids ->> 0, ref FROM incidents;
