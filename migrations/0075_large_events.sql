-- Bodies of events above 1 MiB, in pieces that are written while they arrive. Pieces without an event are removed.
CREATE TABLE catch_pieces (
  upload INTEGER NOT NULL,
  number INTEGER NOT NULL, -- from 0
  bytes  BLOB    NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT, WITHOUT ROWID;

-- Of a body in pieces, whose `body` is empty. Null for all others.
ALTER TABLE catch_payloads ADD COLUMN upload INTEGER;
ALTER TABLE catch_payloads ADD COLUMN body_bytes INTEGER;
ALTER TABLE catch_payloads ADD COLUMN sha256 BLOB;
CREATE INDEX catch_payloads_by_upload ON catch_payloads (upload) WHERE upload IS NOT NULL;

-- Bytes of the bodies of its events, so that nobody has to sum them up.
ALTER TABLE catch_buckets ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE catch_buckets SET stored_bytes = (SELECT coalesce(sum(payload_bytes), 0) FROM catch_events WHERE bucket_ref = ref);
