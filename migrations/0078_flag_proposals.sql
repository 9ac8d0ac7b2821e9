-- Whether changes of flags need the approval of somebody else.
ALTER TABLE projects ADD COLUMN review INTEGER NOT NULL DEFAULT 0;

CREATE TABLE flag_proposals (
  ref              INTEGER PRIMARY KEY,
  id               TEXT    NOT NULL UNIQUE,
  project_ref      INTEGER NOT NULL,
  flag_key         TEXT    NOT NULL,
  status           TEXT    NOT NULL,
  -- Version of the flag when the change was proposed; null if there was no flag.
  base_version     INTEGER,
  -- JSON: fields of a save; null to delete the flag.
  change           TEXT,
  -- JSON: the changed fields before and after.
  was              TEXT,
  became           TEXT,
  comment          TEXT,
  -- The person or the key that has proposed it.
  proposer         TEXT    NOT NULL,
  -- JSON: who has proposed and decided it, as shown.
  proposed_by      TEXT    NOT NULL,
  decided_by       TEXT,
  decision_comment TEXT,
  created_at       INTEGER NOT NULL,
  decided_at       INTEGER
) STRICT;
CREATE INDEX flag_proposals_by_project ON flag_proposals (project_ref, ref);
CREATE INDEX flag_proposals_by_flag ON flag_proposals (project_ref, flag_key, ref);
CREATE INDEX flag_proposals_open ON flag_proposals (project_ref, flag_key) WHERE status = 'open';
CREATE INDEX flag_proposals_by_age ON flag_proposals (created_at);
