-- Until when nobody is notified again of an outage; null: it was not snoozed.
ALTER TABLE incidents ADD COLUMN snoozed_until INTEGER;

-- Links in alerts that were used: each works once.
CREATE TABLE incident_link_uses (
  incident_ref INTEGER NOT NULL,
  digest       BLOB    NOT NULL, -- the first 16 bytes of the SHA-256 of the token
  PRIMARY KEY (incident_ref, digest)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER incidents_links AFTER DELETE ON incidents BEGIN
  DELETE FROM incident_link_uses WHERE incident_ref = OLD.ref;
END;
