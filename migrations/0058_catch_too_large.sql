-- Requests to a bucket that were too large to be stored.
ALTER TABLE catch_buckets ADD COLUMN too_large INTEGER NOT NULL DEFAULT 0;
ALTER TABLE catch_buckets ADD COLUMN last_too_large_at INTEGER;
