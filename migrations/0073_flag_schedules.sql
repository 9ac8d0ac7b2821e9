-- Changes of flags that apply at a time.
CREATE TABLE flag_schedules (
  ref         INTEGER PRIMARY KEY,
  flag_ref    INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  account_ref INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  -- JSON: fields of a save.
  change      TEXT    NOT NULL,
  -- JSON: who has scheduled it.
  actor       TEXT    NOT NULL,
  -- Why it did not apply; null while it is pending.
  error       TEXT
) STRICT;
CREATE INDEX flag_schedules_by_flag ON flag_schedules (flag_ref, at, ref);

-- JSON: the id of the scheduled change that acted, and who has scheduled it.
ALTER TABLE audit_log ADD COLUMN schedule TEXT;
