-- What a key may do beyond its scopes: whose it is, how often and from where it is used, and whether it is used at all.
ALTER TABLE keys ADD COLUMN owner_id TEXT;
ALTER TABLE keys ADD COLUMN meter_id TEXT;
ALTER TABLE keys ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1;
ALTER TABLE keys ADD COLUMN ratelimits TEXT;       -- JSON; null: none
ALTER TABLE keys ADD COLUMN allowed_ips BLOB;      -- packed ranges; null: any address
ALTER TABLE keys ADD COLUMN allowance_ref INTEGER; -- the key whose allowance it draws on since its rotation; null: its own
CREATE INDEX keys_by_owner ON keys (account_ref, owner_id, created_at) WHERE owner_id IS NOT NULL AND deleted = 0;
-- Those that a revocation by owner has before it, without the ones that it has done.
CREATE INDEX keys_by_owner_in_use ON keys (account_ref, owner_id, project_ref)
  WHERE owner_id IS NOT NULL AND revoked_at IS NULL AND deleted = 0;
CREATE INDEX keys_by_allowance ON keys (allowance_ref) WHERE allowance_ref IS NOT NULL;

-- Uses that keys have left. A key whose allowance has no row is used without limit.
CREATE TABLE key_allowances (
  ref         INTEGER PRIMARY KEY, -- that of the first key that draws on it
  remaining   INTEGER NOT NULL,
  every       TEXT,                -- day, month; null: no refill
  amount      INTEGER,
  day         INTEGER,             -- of the month
  refilled_at INTEGER NOT NULL     -- epoch ms: refills up to here are in `remaining`
) STRICT;

-- How keys were used, by the hour, written in the background.
CREATE TABLE key_hours (
  key_ref INTEGER NOT NULL,
  hour    INTEGER NOT NULL, -- since 1970
  outcome INTEGER NOT NULL, -- place in the list of outcomes
  count   INTEGER NOT NULL,
  PRIMARY KEY (key_ref, hour, outcome)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_hours_by_hour ON key_hours (hour);
