-- Steps of the escalation of a channel: JSON of times and of references of channels, of which some may be gone.
ALTER TABLE channels ADD COLUMN escalate TEXT NOT NULL DEFAULT '[]';

-- Channels that steps have notified of the outage of a monitor: they get its recovery too.
CREATE TABLE escalated_channels (
  channel_ref INTEGER NOT NULL,
  monitor_ref INTEGER NOT NULL,
  PRIMARY KEY (channel_ref, monitor_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX escalated_channels_of_monitor ON escalated_channels (monitor_ref);
CREATE TRIGGER channels_escalated AFTER DELETE ON channels BEGIN
  DELETE FROM escalated_channels WHERE channel_ref = OLD.ref;
END;
