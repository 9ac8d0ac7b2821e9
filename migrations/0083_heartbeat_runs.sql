-- Longest duration of a run, in milliseconds. Null: the grace.
ALTER TABLE heartbeats ADD COLUMN start_grace_ms INTEGER;
-- Runs that may begin in a period. Null: any number.
ALTER TABLE heartbeats ADD COLUMN max_runs_per_period INTEGER;
ALTER TABLE heartbeat_states ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE heartbeat_states ADD COLUMN runs_until INTEGER;
