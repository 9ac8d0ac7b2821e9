-- Messages with which channels got alerts later. The timelines of the incidents show the channel as soon as its message is here.
CREATE TABLE alert_digests (
  channel_ref INTEGER NOT NULL, -- also of one that is gone
  number      INTEGER NOT NULL, -- of the messages of the channel
  project_ref INTEGER NOT NULL,
  at          INTEGER NOT NULL, -- when it was sent, epoch ms
  PRIMARY KEY (channel_ref, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_digests_of_project ON alert_digests (project_ref);
CREATE INDEX alert_digests_by_time ON alert_digests (at);

-- The message with which the channel gets the alert; null: it got it at that time.
ALTER TABLE incident_alerts ADD COLUMN channel_ref INTEGER;
ALTER TABLE incident_alerts ADD COLUMN digest INTEGER;

-- The number of the next message of the channel.
ALTER TABLE channels ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;
-- Held alerts that are counted only, since there were too many: JSON of their numbers by events.
ALTER TABLE channels ADD COLUMN held_counts TEXT NOT NULL DEFAULT '{}';
-- Until now only their number was known. Outages that recoveries followed were the first ones.
UPDATE channels SET held_counts = json_object('monitor.down', held_dropped) WHERE held_dropped > 0;
ALTER TABLE channels DROP COLUMN held_dropped;

ALTER TABLE held_alerts ADD COLUMN account_ref INTEGER NOT NULL DEFAULT 0;
ALTER TABLE held_alerts ADD COLUMN incident_ref INTEGER;
-- Whether another alert about the same monitor followed.
ALTER TABLE held_alerts ADD COLUMN followed INTEGER NOT NULL DEFAULT 0;
UPDATE held_alerts SET
  account_ref = (SELECT account_ref FROM channels WHERE channels.ref = channel_ref),
  incident_ref = (SELECT incidents.ref FROM incidents WHERE incident_id = json_extract(message, '$.facts.incident_id')),
  followed = EXISTS (SELECT 1 FROM held_alerts AS later WHERE later.channel_ref = held_alerts.channel_ref
    AND later.monitor_ref = held_alerts.monitor_ref AND later.ref > held_alerts.ref);
DROP INDEX held_alerts_of_channel;
CREATE INDEX held_alerts_of_channel ON held_alerts (channel_ref, followed DESC, ref);
CREATE INDEX held_alerts_newest ON held_alerts (channel_ref, monitor_ref) WHERE followed = 0;

-- Held alerts of all channels of an account.
CREATE TABLE held_totals (
  account_ref INTEGER PRIMARY KEY,
  n           INTEGER NOT NULL
) STRICT;
INSERT INTO held_totals SELECT account_ref, count(*) FROM held_alerts GROUP BY account_ref;
CREATE TRIGGER held_alerts_added AFTER INSERT ON held_alerts BEGIN
  INSERT INTO held_totals VALUES (NEW.account_ref, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER held_alerts_removed AFTER DELETE ON held_alerts BEGIN
  UPDATE held_totals SET n = n - 1 WHERE account_ref = OLD.account_ref;
  DELETE FROM held_totals WHERE account_ref = OLD.account_ref AND n = 0;
END;

-- Alerts that are held now are on the timelines when their message is sent.
INSERT OR REPLACE INTO incident_alerts (incident_ref, number, at, event, channels, channel_ref, digest)
SELECT incident_ref, min(100, coalesce((SELECT max(number) FROM incident_alerts AS sent WHERE sent.incident_ref = held.incident_ref), 0)
    + row_number() OVER (PARTITION BY incident_ref ORDER BY held.ref)), at, event, json_array(name), channel_ref, 0
FROM held_alerts AS held JOIN channels ON channels.ref = channel_ref WHERE incident_ref IS NOT NULL;
