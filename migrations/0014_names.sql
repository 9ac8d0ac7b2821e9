-- Names that users give: unique in their project, so that a script finds again what it has made.
ALTER TABLE monitors ADD COLUMN name TEXT;
CREATE UNIQUE INDEX monitors_by_name ON monitors (project_ref, name) WHERE name IS NOT NULL;
ALTER TABLE catch_buckets ADD COLUMN name TEXT;
-- A bucket that is being removed has given its name back.
CREATE UNIQUE INDEX catch_buckets_by_name ON catch_buckets (project_ref, name)
  WHERE name IS NOT NULL AND deleted_at IS NULL;
