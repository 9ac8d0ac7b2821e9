-- What the server measured in each minute, for a week; one small row a minute.
CREATE TABLE server_minutes (
  minute          INTEGER PRIMARY KEY, -- minutes since the Unix epoch
  requests        INTEGER NOT NULL,
  errors          INTEGER NOT NULL, -- responses with a status of 500 or above
  p99_ms          REAL,             -- null: no request
  commits         INTEGER NOT NULL,
  commit_failures INTEGER NOT NULL,
  jobs_due        INTEGER NOT NULL,
  jobs_overdue_s  REAL    NOT NULL,
  lag_ms          REAL    NOT NULL, -- 99th percentile of the event loop's lag
  memory_bytes    INTEGER NOT NULL,
  database_bytes  INTEGER NOT NULL,
  disk_free_bytes INTEGER           -- null: the system does not report it
) STRICT;
