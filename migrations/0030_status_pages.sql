-- Status pages: what anybody sees of some of a project's monitors.
CREATE TABLE status_pages (
  ref         INTEGER PRIMARY KEY AUTOINCREMENT,
  page_id     TEXT    NOT NULL,
  account_ref INTEGER NOT NULL,
  project_ref INTEGER NOT NULL,
  slug        TEXT    NOT NULL, -- unique on the server: it is the address
  settings    TEXT    NOT NULL, -- JSON; monitors that are gone may stand in it
  created_at  INTEGER NOT NULL, -- epoch ms
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX status_pages_by_id ON status_pages (page_id);
CREATE UNIQUE INDEX status_pages_by_slug ON status_pages (slug);
CREATE INDEX status_pages_by_project ON status_pages (project_ref, ref);

CREATE TRIGGER status_pages_counted AFTER INSERT ON status_pages BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'pages', 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER status_pages_discounted AFTER DELETE ON status_pages BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'pages';
END;

-- What the hours of a day come to, for as long as pages show it. Days that are over alone: the hours have the current one.
CREATE TABLE monitor_days (
  monitor_ref    INTEGER NOT NULL,
  day            INTEGER NOT NULL, -- epoch ms of its beginning, UTC
  checks         INTEGER NOT NULL,
  up             INTEGER NOT NULL,
  observer_ms    INTEGER NOT NULL, -- for how long this server's own line was cut
  maintenance_ms INTEGER NOT NULL,
  PRIMARY KEY (monitor_ref, day)
) STRICT, WITHOUT ROWID;

-- Incidents that people have told, which pages look for among those of monitors.
CREATE INDEX incidents_by_people ON incidents (project_ref, ref) WHERE monitor_ref IS NULL;
