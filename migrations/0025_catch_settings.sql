-- What a bucket's owner has set beyond the plain terms: sealed JSON, since secrets are among it. Null: nothing.
ALTER TABLE catch_buckets ADD COLUMN settings BLOB;
-- Beside the others, for the hourly clean-up, which opens no bucket. Null: as long as the tier keeps events.
ALTER TABLE catch_buckets ADD COLUMN retention_hours INTEGER;

-- What the sender calls an event. Null where it says nothing, and for all that came in before.
ALTER TABLE catch_events ADD COLUMN event_type TEXT;
ALTER TABLE catch_events ADD COLUMN provider_event_id TEXT;
ALTER TABLE catch_events ADD COLUMN duplicates INTEGER NOT NULL DEFAULT 0;

-- How a request came in. Null: POST, no path below the bucket's, no query, and an address that nobody noted.
ALTER TABLE catch_payloads ADD COLUMN method TEXT;
ALTER TABLE catch_payloads ADD COLUMN path TEXT;
ALTER TABLE catch_payloads ADD COLUMN query TEXT;
ALTER TABLE catch_payloads ADD COLUMN remote_address TEXT;

-- Ids that senders gave to events which a bucket has taken in, while repeats are to be noticed.
CREATE TABLE catch_seen (
  bucket_ref INTEGER NOT NULL,
  digest     BLOB    NOT NULL, -- the first 16 bytes of the id's SHA-256
  sequence   INTEGER NOT NULL, -- of the first event
  expires_at INTEGER NOT NULL, -- epoch ms
  PRIMARY KEY (bucket_ref, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX catch_seen_by_end ON catch_seen (expires_at);
