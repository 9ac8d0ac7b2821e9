-- Daily hours in which a channel gets no alerts: JSON with from, to and time_zone, or null.
ALTER TABLE channels ADD COLUMN quiet_hours TEXT NOT NULL DEFAULT 'null';
-- For how long alerts are collected into one message, milliseconds.
ALTER TABLE channels ADD COLUMN group_ms INTEGER NOT NULL DEFAULT 0;
-- Held alerts of the channel that were dropped because there were too many.
ALTER TABLE channels ADD COLUMN held_dropped INTEGER NOT NULL DEFAULT 0;

-- Alerts that a channel gets later, in one message.
CREATE TABLE held_alerts (
  ref         INTEGER PRIMARY KEY,
  channel_ref INTEGER NOT NULL,
  monitor_ref INTEGER, -- null: it is about the project
  event       TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  message     TEXT    NOT NULL -- JSON
) STRICT;
CREATE INDEX held_alerts_of_channel ON held_alerts (channel_ref, monitor_ref);
CREATE INDEX held_alerts_of_monitor ON held_alerts (monitor_ref) WHERE monitor_ref IS NOT NULL;
CREATE TRIGGER channels_held AFTER DELETE ON channels BEGIN
  DELETE FROM held_alerts WHERE channel_ref = OLD.ref;
END;
