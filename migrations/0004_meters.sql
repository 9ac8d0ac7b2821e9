CREATE TABLE meters (
  ref           INTEGER PRIMARY KEY,
  project_ref   INTEGER NOT NULL,
  meter_id      TEXT    NOT NULL,
  balance       INTEGER NOT NULL, -- as of last_sequence; later entries are settled in the background
  last_sequence INTEGER NOT NULL,
  UNIQUE (project_ref, meter_id)
) STRICT;

-- The ledger of tenant meters: append-only. Each entry names its meter's previous one, so that a history is a
-- walk by primary key and no index is written on the hot path.
CREATE TABLE meter_entries (
  sequence      INTEGER PRIMARY KEY,
  meter_ref     INTEGER NOT NULL,
  previous      INTEGER NOT NULL, -- 0 for a meter's first entry
  kind          INTEGER NOT NULL, -- 1 deduct, 2 refill, 3 reset
  amount        INTEGER NOT NULL, -- signed: what the balance changed by
  balance_after INTEGER NOT NULL,
  at            INTEGER NOT NULL, -- epoch ms
  request_id    BLOB    NOT NULL
) STRICT;
