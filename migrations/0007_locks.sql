-- Locks that are held now. A free lock has no row: what must outlive it is the sequence of fencing tokens, which all
-- locks share and whose reserved end stands in settings. Grants therefore append at the table's end, and a release
-- deletes by primary key. Which lock is whose is looked up in memory, so there is no index.
CREATE TABLE locks (
  fencing_token INTEGER PRIMARY KEY,
  project_ref   INTEGER NOT NULL,
  key           TEXT    NOT NULL,
  token         TEXT    NOT NULL,
  expires_at    INTEGER NOT NULL -- epoch ms
) STRICT;
