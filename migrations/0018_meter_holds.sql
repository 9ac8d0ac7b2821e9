-- 1 once a meter had holds, a refill plan or an alert of its own: all others are read by one look-up.
ALTER TABLE meters ADD COLUMN has_extras INTEGER NOT NULL DEFAULT 0;

-- Which hold a capture is of.
ALTER TABLE meter_entries ADD COLUMN hold_id TEXT;

-- Credits that are kept for what is under way. An open hold takes from what is available of a meter, not from its balance.
CREATE TABLE meter_holds (
  ref         INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL,
  meter_ref   INTEGER NOT NULL,
  hold_id     TEXT    NOT NULL,
  status      INTEGER NOT NULL, -- 1 open, 2 captured, 3 released, 4 expired
  requested   INTEGER NOT NULL,
  at_most     INTEGER NOT NULL, -- 1: held what there was
  amount      INTEGER NOT NULL, -- what is held; of an ended one what was held at its end
  captured    INTEGER NOT NULL,
  asked       INTEGER,          -- what the final capture asked for
  shortfall   INTEGER NOT NULL, -- what the final capture did not get of it
  created_at  INTEGER NOT NULL, -- epoch ms, as all times
  expires_at  INTEGER NOT NULL,
  ended_at    INTEGER,
  metadata    TEXT,             -- JSON
  UNIQUE (project_ref, hold_id)
) STRICT;
CREATE INDEX meter_holds_of_meter ON meter_holds (meter_ref, status, ref);
CREATE INDEX meter_holds_open ON meter_holds (expires_at) WHERE status = 1;
CREATE INDEX meter_holds_ended ON meter_holds (ended_at) WHERE ended_at IS NOT NULL;

-- What a meter gets again and again.
CREATE TABLE meter_plans (
  meter_ref INTEGER PRIMARY KEY,
  amount    INTEGER NOT NULL,
  every     INTEGER NOT NULL, -- 1 day, 2 week, 3 month
  mode      INTEGER NOT NULL, -- 1 raise, 2 add
  day       INTEGER,          -- of the month, or of the week from Monday
  carry_max INTEGER,
  next_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX meter_plans_due ON meter_plans (next_at);

-- Who hears when a meter runs low. meter_ref 0: for all meters of the project that have none of their own.
CREATE TABLE meter_alerts (
  project_ref INTEGER NOT NULL,
  meter_ref   INTEGER NOT NULL,
  account_ref INTEGER NOT NULL, -- whose key signs
  threshold   INTEGER NOT NULL,
  webhook_url TEXT    NOT NULL,
  PRIMARY KEY (project_ref, meter_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX meter_alerts_of_projects ON meter_alerts (project_ref) WHERE meter_ref = 0;

-- Sums of the ledger by hour, as of the setting meter_usage_through. meter_ref 0: of all meters of the project.
CREATE TABLE meter_usage (
  project_ref   INTEGER NOT NULL,
  meter_ref     INTEGER NOT NULL,
  hour          INTEGER NOT NULL, -- since 1970
  deducted      INTEGER NOT NULL, -- sums end at the largest integer that JSON carries
  refilled      INTEGER NOT NULL,
  reset         INTEGER NOT NULL, -- signed
  entries       INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  balance       INTEGER NOT NULL, -- after that entry; says nothing of a project
  PRIMARY KEY (project_ref, meter_ref, hour)
) STRICT, WITHOUT ROWID;

-- Projects whose plans have stopped; an entry stays until their rows are gone.
CREATE TABLE meter_stopped_projects (project_ref INTEGER PRIMARY KEY) STRICT;
