-- How much an account has of what its tier bounds, so that nobody has to count it. Kept by triggers: whatever changes a
-- row, in whichever area, the count is right with it.
CREATE TABLE account_counts (
  account_ref INTEGER NOT NULL,
  kind        TEXT    NOT NULL, -- projects, keys, monitors
  count       INTEGER NOT NULL,
  PRIMARY KEY (account_ref, kind)
) STRICT, WITHOUT ROWID;

-- Projects, the default one included, until they are deleted.
INSERT INTO account_counts
  SELECT account_ref, 'projects', count(*) FROM projects WHERE deleted_at IS NULL GROUP BY account_ref;
CREATE TRIGGER projects_counted AFTER INSERT ON projects WHEN NEW.deleted_at IS NULL BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'projects', 1)
    ON CONFLICT (account_ref, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER projects_discounted AFTER UPDATE OF deleted_at ON projects
  WHEN OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'projects';
END;

-- Managed keys whose record is kept: not revoked, not of a deleted project, not let go after their end.
INSERT INTO account_counts
  SELECT account_ref, 'keys', count(*) FROM keys WHERE purge_at IS NULL GROUP BY account_ref;
CREATE TRIGGER keys_counted AFTER INSERT ON keys WHEN NEW.purge_at IS NULL BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'keys', 1)
    ON CONFLICT (account_ref, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER keys_discounted AFTER UPDATE OF purge_at ON keys
  WHEN OLD.purge_at IS NULL AND NEW.purge_at IS NOT NULL BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'keys';
END;
-- Those that have ended, which make room for new ones.
CREATE INDEX keys_by_end ON keys (account_ref, expires_at) WHERE purge_at IS NULL AND expires_at IS NOT NULL;

-- Monitors, active or not.
INSERT INTO account_counts SELECT account_ref, 'monitors', count(*) FROM monitors GROUP BY account_ref;
CREATE TRIGGER monitors_counted AFTER INSERT ON monitors BEGIN
  INSERT INTO account_counts VALUES (NEW.account_ref, 'monitors', 1)
    ON CONFLICT (account_ref, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER monitors_discounted AFTER DELETE ON monitors BEGIN
  UPDATE account_counts SET count = count - 1 WHERE account_ref = OLD.account_ref AND kind = 'monitors';
END;
