-- Token buckets of rate limits of more than an hour, written in the background. A full bucket needs no row.
CREATE TABLE key_limit_levels (
  ref         INTEGER PRIMARY KEY,
  account_ref INTEGER NOT NULL,
  key_ref     INTEGER,          -- the first of the keys that rotations have joined; null: an owner's keys share it
  project_ref INTEGER,          -- of a shared one; null: of keys of the account
  owner_id    TEXT,             -- of a shared one
  name        TEXT    NOT NULL,
  level       INTEGER NOT NULL, -- in parts of a token, of which duration_ms make one
  tokens      INTEGER NOT NULL, -- of a full bucket
  duration_ms INTEGER NOT NULL, -- that an empty bucket takes to fill
  filled_at   INTEGER NOT NULL, -- epoch ms: the time of the level
  full_at     INTEGER NOT NULL  -- epoch ms: from then on the row is not needed
) STRICT;
CREATE INDEX key_limit_levels_by_place ON key_limit_levels (key_ref, project_ref, account_ref, owner_id, name);
CREATE INDEX key_limit_levels_by_account ON key_limit_levels (account_ref);
CREATE INDEX key_limit_levels_by_time ON key_limit_levels (full_at);
