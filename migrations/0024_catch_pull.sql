-- Whether events wait until somebody fetches and acknowledges them. Such a bucket needs no target: its target_url may be ''.
ALTER TABLE catch_buckets ADD COLUMN pull INTEGER NOT NULL DEFAULT 0;

-- Replays of many. One that runs has a job of kind catch.replays, and one of kind catch.replay for each event under way.
CREATE TABLE catch_replays (
  bucket_ref  INTEGER NOT NULL,
  replay_id   TEXT    NOT NULL,
  status      INTEGER NOT NULL, -- 1 running, 2 done, 3 cancelled
  filters     TEXT    NOT NULL, -- JSON
  per_second  INTEGER NOT NULL,
  after_ref   INTEGER NOT NULL, -- events up to here have had their turn
  through_ref INTEGER NOT NULL, -- the last one that matched
  matched     INTEGER NOT NULL,
  more        INTEGER NOT NULL,
  resent      INTEGER NOT NULL, -- taken up, whatever became of them
  delivered   INTEGER NOT NULL,
  failed      INTEGER NOT NULL,
  invalid     INTEGER NOT NULL, -- matched otherwise, but their signatures do not hold
  error       TEXT,
  created_at  INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (bucket_ref, replay_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX catch_replays_by_end ON catch_replays (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX catch_replays_running ON catch_replays (bucket_ref) WHERE finished_at IS NULL;
