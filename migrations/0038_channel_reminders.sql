-- Reminders of channels: never, 1h, 6h or 1d. The last notification is a delivery or an e-mail, by its id.
ALTER TABLE channels ADD COLUMN remind TEXT NOT NULL DEFAULT 'never';
ALTER TABLE channels ADD COLUMN last_delivery TEXT;
ALTER TABLE channels ADD COLUMN last_sent_at INTEGER;
ALTER TABLE channels ADD COLUMN last_error TEXT;
CREATE INDEX channels_by_last_delivery ON channels (last_delivery) WHERE last_delivery IS NOT NULL;
