-- What a flag has beyond its switch. A flag without a definition is on or off.
ALTER TABLE flags ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
-- The project's version at the flag's last change; 0 for one that has not changed since flags have versions.
ALTER TABLE flags ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
-- Null for flags that are older than this step.
ALTER TABLE flags ADD COLUMN created_at INTEGER;
ALTER TABLE flags ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
-- JSON. The last column, so that lists need not read it.
ALTER TABLE flags ADD COLUMN definition TEXT;
-- Nobody knows when these were last changed: at this moment at the latest.
UPDATE flags SET updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER);

CREATE TABLE flag_projects (
  project_ref    INTEGER PRIMARY KEY,
  -- One more with every change of a flag, deletions included.
  version        INTEGER NOT NULL,
  -- The version at the last change of a flag that not only servers see, or saw.
  public_version INTEGER NOT NULL,
  -- Of all definitions, in UTF-8.
  bytes          INTEGER NOT NULL
) STRICT;

CREATE TABLE flag_uses (
  flag_ref INTEGER PRIMARY KEY,
  -- Epoch milliseconds, at the full hour.
  at       INTEGER NOT NULL
) STRICT;
