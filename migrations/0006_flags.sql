CREATE TABLE flags (
  ref         INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL,
  flag_key    TEXT    NOT NULL,
  enabled     INTEGER NOT NULL,
  description TEXT,
  UNIQUE (project_ref, flag_key)
) STRICT;
CREATE INDEX flags_by_project ON flags (project_ref, ref);
