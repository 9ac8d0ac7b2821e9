-- A shared lock has a row for each of its holders.
ALTER TABLE locks ADD COLUMN mode TEXT NOT NULL DEFAULT 'exclusive'; -- exclusive | shared
