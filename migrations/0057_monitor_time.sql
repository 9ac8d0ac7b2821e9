-- How long the checks of an hour or a day stood for a state of the target, and how much of it that was up, in milliseconds:
-- each scheduled check stands for the time until the next one. Null in hours and days of earlier versions, whose checks weigh
-- the same.
ALTER TABLE monitor_states ADD COLUMN hour_known_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE monitor_states ADD COLUMN hour_up_ms INTEGER NOT NULL DEFAULT 0;
-- The check that stands until the next one: its time and whether it was up. Null where none does, as in maintenance.
ALTER TABLE monitor_states ADD COLUMN stands_since INTEGER;
ALTER TABLE monitor_states ADD COLUMN stands_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE monitor_hours ADD COLUMN known_ms INTEGER;
ALTER TABLE monitor_hours ADD COLUMN up_ms INTEGER;
ALTER TABLE monitor_days ADD COLUMN known_ms INTEGER;
ALTER TABLE monitor_days ADD COLUMN up_ms INTEGER;
