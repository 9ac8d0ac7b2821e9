-- The last tries to deliver an event: forwards and replays. Its row in catch_events counts those that changed it.
CREATE TABLE catch_attempts (
  sequence        INTEGER NOT NULL, -- of the event
  number          INTEGER NOT NULL, -- from 1; the oldest go
  kind            INTEGER NOT NULL, -- 0 forward, 1 replay
  at              INTEGER NOT NULL, -- epoch ms, when it began
  duration_ms     INTEGER NOT NULL,
  response_status INTEGER,
  error           TEXT,
  response_body   TEXT,             -- its beginning; null without an answer
  PRIMARY KEY (sequence, number)
) STRICT, WITHOUT ROWID;
