-- Whether the subscribers of status pages were notified of an incident: publishing it again notifies nobody. Existing incidents count as
-- announced.
ALTER TABLE incidents ADD COLUMN announced INTEGER NOT NULL DEFAULT 1;
