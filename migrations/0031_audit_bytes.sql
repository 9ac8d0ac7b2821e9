-- Bytes of the audit entries that each account has written on its last day with any: the budget of its tier is per day.
CREATE TABLE audit_bytes (
  account_ref INTEGER PRIMARY KEY,
  day         INTEGER NOT NULL, -- since 1970-01-01, UTC
  bytes       INTEGER NOT NULL
) STRICT;
