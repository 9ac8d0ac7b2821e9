-- Token of a push monitor of Uptime Kuma, whose URL pings the heartbeat: who knows it may ping.
ALTER TABLE heartbeats ADD COLUMN push_token TEXT;
CREATE UNIQUE INDEX heartbeats_by_push_token ON heartbeats (push_token) WHERE push_token IS NOT NULL;
