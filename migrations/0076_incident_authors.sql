-- Who posted an update, by name; null in rows of earlier versions.
ALTER TABLE incident_updates ADD COLUMN author TEXT;
