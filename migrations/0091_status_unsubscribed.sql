-- Addresses that unsubscribed from a status page, so that an import does not add them again.
CREATE TABLE status_unsubscribed (
  ref         INTEGER PRIMARY KEY,
  page_ref    INTEGER NOT NULL,
  project_ref INTEGER NOT NULL,
  digest      BLOB    NOT NULL -- of the page and the address, 16 bytes of SHA-256
) STRICT;
CREATE UNIQUE INDEX status_unsubscribed_by_digest ON status_unsubscribed (page_ref, digest);
CREATE INDEX status_unsubscribed_by_project ON status_unsubscribed (project_ref);
