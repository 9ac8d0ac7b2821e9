-- What a monitor's owner has set beyond the plain terms: JSON of what is not at its default. Null: nothing.
ALTER TABLE monitors ADD COLUMN options TEXT;

ALTER TABLE monitor_states ADD COLUMN degraded INTEGER NOT NULL DEFAULT 0; -- 1: up, but slow
-- Checks in a row towards a change: successes of what is down, else slow ones, or fast ones while it is degraded.
ALTER TABLE monitor_states ADD COLUMN streak INTEGER NOT NULL DEFAULT 0;
-- The certificate that the last check met, and when its end was told last: JSON.
ALTER TABLE monitor_states ADD COLUMN certificate TEXT;
CREATE INDEX monitor_states_degraded ON monitor_states (project_ref, monitor_ref) WHERE degraded = 1;
