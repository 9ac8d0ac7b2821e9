-- Deliveries of inbound events to endpoints: the bucket and the event, which has the content. Null for the others.
ALTER TABLE relays ADD COLUMN bucket_id TEXT;
ALTER TABLE relays ADD COLUMN event_id TEXT;
CREATE INDEX relays_by_event ON relays (event_id, ref) WHERE event_id IS NOT NULL;

-- The buckets that deliver to an endpoint. The targets themselves, with their filters, are in the settings of a bucket.
CREATE TABLE catch_targets (
  endpoint_id TEXT    NOT NULL,
  bucket_ref  INTEGER NOT NULL,
  PRIMARY KEY (endpoint_id, bucket_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX catch_targets_by_bucket ON catch_targets (bucket_ref);

-- Events that a bulk replay has queued for delivery to endpoints.
ALTER TABLE catch_replays ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;
