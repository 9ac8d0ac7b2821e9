-- Planned work. `starts_at` and `ends_at` are its window; of one that recurs, the window now or next.
CREATE TABLE monitor_maintenance (
  ref            INTEGER PRIMARY KEY AUTOINCREMENT,
  maintenance_id TEXT    NOT NULL,
  project_ref    INTEGER NOT NULL,
  title          TEXT    NOT NULL,
  message        TEXT    NOT NULL,
  starts_at      INTEGER NOT NULL, -- epoch ms
  ends_at        INTEGER NOT NULL, -- epoch ms
  schedule       TEXT,             -- null: it happens once, and has the next two neither
  tz             TEXT,
  duration_ms    INTEGER,
  public         INTEGER NOT NULL,
  begun          INTEGER NOT NULL, -- whether its window is open and was told of
  created_at     INTEGER NOT NULL, -- epoch ms
  updated_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX monitor_maintenance_by_id ON monitor_maintenance (maintenance_id);
CREATE INDEX monitor_maintenance_by_project ON monitor_maintenance (project_ref, ref);

-- The monitors of planned work.
CREATE TABLE monitor_maintained (
  monitor_ref     INTEGER NOT NULL,
  maintenance_ref INTEGER NOT NULL,
  PRIMARY KEY (monitor_ref, maintenance_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX monitor_maintained_by_maintenance ON monitor_maintained (maintenance_ref, monitor_ref);

-- Monitors that depend on another one.
CREATE TABLE monitor_parents (
  monitor_ref INTEGER PRIMARY KEY,
  parent_ref  INTEGER NOT NULL
) STRICT;
CREATE INDEX monitor_parents_by_parent ON monitor_parents (parent_ref, monitor_ref);

-- Of monitors whose status has changed lately.
CREATE TABLE monitor_quiet (
  monitor_ref INTEGER PRIMARY KEY,
  changes     TEXT    NOT NULL, -- JSON: epoch ms of the last changes of its status, oldest first
  flapping    INTEGER NOT NULL
) STRICT;

-- Times in which this server's own line was cut.
CREATE TABLE monitor_observer_outages (
  from_at INTEGER PRIMARY KEY, -- epoch ms
  to_at   INTEGER              -- epoch ms; null while it lasts
) STRICT;

-- Why a check counts for nothing: 1 the server's own line was cut, 2 planned work. 0: it counts.
ALTER TABLE monitor_checks ADD COLUMN mark INTEGER NOT NULL DEFAULT 0;
