-- Alerts that channels were sent about an incident.
CREATE TABLE incident_alerts (
  incident_ref INTEGER NOT NULL,
  number       INTEGER NOT NULL,
  at           INTEGER NOT NULL, -- epoch ms
  event        TEXT    NOT NULL,
  channels     TEXT    NOT NULL, -- JSON: names at that time
  PRIMARY KEY (incident_ref, number)
) STRICT, WITHOUT ROWID;
