-- Position of this file in its archive or commit log, written by each batch's own transaction. Without an archive or a commit log the
-- table is empty: a row says that every change since the position is an entry.
CREATE TABLE replica_position (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  epoch INTEGER NOT NULL,
  seq   INTEGER NOT NULL,
  -- Time of the batch, epoch milliseconds.
  at    INTEGER NOT NULL
);
