-- Probes: the executable on other machines, which checks monitors of a project.
CREATE TABLE probes (
  ref             INTEGER PRIMARY KEY AUTOINCREMENT,
  probe_id        TEXT    NOT NULL UNIQUE,
  account_ref     INTEGER NOT NULL,
  project_ref     INTEGER NOT NULL,
  managed_by      TEXT,
  name            TEXT    NOT NULL,
  location        TEXT,
  token_digest    BLOB    NOT NULL UNIQUE, -- SHA-256
  last_seen_at    INTEGER, -- null: never
  offline         INTEGER NOT NULL DEFAULT 0, -- 1: silent for two minutes, and reported
  version         TEXT,
  queue           INTEGER NOT NULL DEFAULT 0, -- results that it still has to send
  clock_offset_ms INTEGER, -- of its wall clock, against the server's
  results         INTEGER NOT NULL DEFAULT 0, -- results so far: the next place in probe_results
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  UNIQUE (project_ref, name)
) STRICT;
CREATE TRIGGER probes_counted AFTER INSERT ON probes BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'probes', 1)
    ON CONFLICT (account_ref, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER probes_discounted AFTER DELETE ON probes BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'probes';
  DELETE FROM probe_results WHERE probe_ref = OLD.ref;
END;

-- Ids of the last results of each probe, so that each counts once. A ring: the newest result replaces the oldest.
CREATE TABLE probe_results (
  probe_ref   INTEGER NOT NULL,
  place       INTEGER NOT NULL,
  digest      BLOB    NOT NULL, -- the first 16 bytes of the SHA-256 of the id
  received_at INTEGER NOT NULL,
  PRIMARY KEY (probe_ref, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX probe_results_digest ON probe_results (probe_ref, digest);

-- Who checks a monitor that probes check, and what each has seen last.
CREATE TABLE monitor_votes (
  monitor_ref          INTEGER NOT NULL,
  probe_ref            INTEGER NOT NULL, -- 0: the server
  status               INTEGER NOT NULL DEFAULT 3, -- as in monitor_states
  latency_ms           INTEGER,
  checked_at           INTEGER,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  degraded             INTEGER NOT NULL DEFAULT 0, -- 1: up, but slow
  streak               INTEGER NOT NULL DEFAULT 0,
  error                TEXT,
  PRIMARY KEY (monitor_ref, probe_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX monitor_votes_probe ON monitor_votes (probe_ref, monitor_ref);

-- The probe that made a check; null: the server.
ALTER TABLE monitor_checks ADD COLUMN probe TEXT;

-- degraded is 2 where some probes see the target down, and fewer than needed.
DROP INDEX monitor_states_degraded;
CREATE INDEX monitor_states_degraded ON monitor_states (project_ref, monitor_ref) WHERE degraded > 0;

UPDATE channels SET events = json_insert(events, '$[#]', 'probe.offline', '$[#]', 'probe.online', '$[#]', 'monitor.unknown')
WHERE EXISTS (SELECT 1 FROM json_each(events) WHERE value = 'observer.offline');
