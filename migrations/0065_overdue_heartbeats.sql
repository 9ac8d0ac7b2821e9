-- 1: a heartbeat that had no success since it was created or resumed, for longer than its period and grace.
ALTER TABLE monitor_states ADD COLUMN overdue INTEGER NOT NULL DEFAULT 0;
CREATE INDEX monitor_states_overdue ON monitor_states (project_ref, monitor_ref) WHERE overdue = 1;

-- Heartbeats without a success wait for one from now on.
INSERT INTO jobs (kind, key, due_at, lane, payload, attempt)
SELECT 'monitors.heartbeats-begin', '0', 0, '', '{"after":0}', 0 WHERE EXISTS (SELECT 1 FROM heartbeats);

UPDATE channels SET events = json_insert(events, '$[#]', 'monitor.overdue')
WHERE EXISTS (SELECT 1 FROM json_each(events) WHERE value = 'observer.offline');
