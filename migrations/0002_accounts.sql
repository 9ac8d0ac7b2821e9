CREATE TABLE accounts (
  ref           INTEGER PRIMARY KEY,
  user_id       TEXT    NOT NULL UNIQUE,
  email         TEXT    NOT NULL,
  email_folded  TEXT    NOT NULL UNIQUE, -- addresses compare without case
  tier          TEXT    NOT NULL,
  balance       INTEGER NOT NULL CHECK (balance >= 0),
  suspended     INTEGER NOT NULL,
  rotated_at    INTEGER,          -- epoch ms of the last rotation of the platform key
  granted_month INTEGER NOT NULL, -- the month (year * 12 + month) of the last grant of credits
  created_at    INTEGER NOT NULL  -- epoch ms
) STRICT;

CREATE TABLE platform_keys (
  id          INTEGER PRIMARY KEY,
  account_ref INTEGER NOT NULL,
  digest      BLOB    NOT NULL UNIQUE, -- SHA-256 of the key
  sealed      BLOB    NOT NULL,        -- the key under the master key: deliveries are signed with it
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER                  -- epoch ms; null for the newest key
) STRICT;
CREATE INDEX platform_keys_by_account ON platform_keys (account_ref, id);

-- The ledger of the accounts' own balances. Request costs are one entry per operation and hour.
CREATE TABLE account_entries (
  sequence      INTEGER PRIMARY KEY,
  account_ref   INTEGER NOT NULL,
  kind          TEXT    NOT NULL, -- deduct, refill, reset, grant, charge
  amount        INTEGER NOT NULL, -- signed: what the balance changed by
  balance_after INTEGER NOT NULL,
  at            INTEGER NOT NULL, -- epoch ms; of a charge, the hour
  request_id    BLOB,
  operation     TEXT,             -- of a charge
  count         INTEGER           -- of a charge: requests
) STRICT;
CREATE INDEX account_entries_by_account ON account_entries (account_ref, sequence);
CREATE UNIQUE INDEX account_charges ON account_entries (account_ref, operation, at) WHERE operation IS NOT NULL;
