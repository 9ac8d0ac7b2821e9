-- Types of messages that a project describes. schema and example are JSON.
CREATE TABLE relay_event_types (
  ref         INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  description TEXT,
  enforce     INTEGER NOT NULL,
  archived    INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  managed_by  TEXT,
  schema      TEXT,
  example     TEXT
) STRICT;
CREATE UNIQUE INDEX relay_event_types_of_project ON relay_event_types (project_ref, name);
CREATE INDEX relay_event_types_by_ref ON relay_event_types (project_ref, archived, ref);

-- Messages that did not fit the schema of their type, by hour, in hours since the epoch.
CREATE TABLE relay_event_type_invalid (
  project_ref INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  hour        INTEGER NOT NULL,
  messages    INTEGER NOT NULL,
  PRIMARY KEY (project_ref, name, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX relay_event_type_invalid_by_hour ON relay_event_type_invalid (hour);

-- What of a message did not fit the schema of its type, as JSON.
CREATE TABLE relay_message_schema_errors (
  message_ref INTEGER PRIMARY KEY,
  errors      TEXT    NOT NULL
) STRICT;

ALTER TABLE relay_schedules ADD COLUMN last_error TEXT;
