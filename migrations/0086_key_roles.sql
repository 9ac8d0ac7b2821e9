-- Sets of permissions of a project, which its keys can have.
CREATE TABLE key_roles (
  ref         INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL,
  name        TEXT    NOT NULL,
  description TEXT,
  permissions TEXT    NOT NULL, -- JSON
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  managed_by  TEXT
) STRICT;
CREATE UNIQUE INDEX key_roles_of_project ON key_roles (project_ref, name);

ALTER TABLE keys ADD COLUMN permissions TEXT; -- JSON; null: none
ALTER TABLE keys ADD COLUMN roles TEXT;       -- names, as JSON; null: none
-- Who holds a key that another key created: person:<id> or key:<ref>; null: the person who created it, or the key itself.
ALTER TABLE keys ADD COLUMN holder TEXT;

-- Which keys have a role, so that it can be seen at once whether one does. Kept by triggers: whatever changes a key, this is
-- right with it. project_ref is 0 for keys of the account, and ends_at the largest integer for keys that do not expire.
CREATE TABLE keys_with_roles (
  account_ref INTEGER NOT NULL,
  project_ref INTEGER NOT NULL,
  role        TEXT    NOT NULL,
  ends_at     INTEGER NOT NULL,
  key_ref     INTEGER NOT NULL,
  PRIMARY KEY (account_ref, project_ref, role, ends_at, key_ref)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER keys_given_roles AFTER INSERT ON keys WHEN NEW.roles IS NOT NULL AND NEW.revoked_at IS NULL BEGIN
  INSERT INTO keys_with_roles
    SELECT DISTINCT NEW.account_ref, coalesce(NEW.project_ref, 0), value, coalesce(NEW.expires_at, 9223372036854775807), NEW.ref
    FROM json_each(NEW.roles);
END;
CREATE TRIGGER keys_changed_roles AFTER UPDATE OF roles, expires_at, revoked_at ON keys
  WHEN OLD.roles IS NOT NULL OR NEW.roles IS NOT NULL BEGIN
  DELETE FROM keys_with_roles WHERE (account_ref, project_ref, role, ends_at, key_ref) IN (
    SELECT DISTINCT OLD.account_ref, coalesce(OLD.project_ref, 0), value, coalesce(OLD.expires_at, 9223372036854775807), OLD.ref
    FROM json_each(coalesce(OLD.roles, '[]')));
  INSERT INTO keys_with_roles
    SELECT DISTINCT NEW.account_ref, coalesce(NEW.project_ref, 0), value, coalesce(NEW.expires_at, 9223372036854775807), NEW.ref
    FROM json_each(coalesce(NEW.roles, '[]')) WHERE NEW.revoked_at IS NULL;
END;
CREATE TRIGGER keys_removed_roles AFTER DELETE ON keys WHEN OLD.roles IS NOT NULL BEGIN
  DELETE FROM keys_with_roles WHERE (account_ref, project_ref, role, ends_at, key_ref) IN (
    SELECT DISTINCT OLD.account_ref, coalesce(OLD.project_ref, 0), value, coalesce(OLD.expires_at, 9223372036854775807), OLD.ref
    FROM json_each(coalesce(OLD.roles, '[]')));
END;
