-- Registration of the name of a domain monitor, as its last check saw it: its end, and the last notification.
ALTER TABLE monitor_states ADD COLUMN domain TEXT;
CREATE INDEX monitors_domain ON monitors (ref) WHERE type = 'domain';
-- The list of RDAP servers (RFC 9224) that was read last; without a file, the one that is built in.
CREATE TABLE rdap_bootstrap (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  source TEXT NOT NULL,
  refreshed_at INTEGER NOT NULL,
  file TEXT
) STRICT;
