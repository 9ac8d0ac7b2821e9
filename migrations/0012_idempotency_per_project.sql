-- Idempotency-Keys are per project. Keys of credentials of the whole account stand under 0, so that they outlive a
-- change of the default project. What was kept until now goes where its credential belongs.
CREATE TABLE idempotency_by_project (
  account_ref INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  project_ref INTEGER NOT NULL, -- 0: of a credential of the account
  fingerprint BLOB    NOT NULL, -- SHA-256 of method, target and body
  credential  TEXT    NOT NULL,
  secret      INTEGER NOT NULL, -- 1: given again to the same credential only
  answer      BLOB    NOT NULL,
  created_at  INTEGER NOT NULL, -- epoch milliseconds
  PRIMARY KEY (account_ref, key, project_ref)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_by_project
  SELECT account_ref, key,
         CASE WHEN credential LIKE 'managed:%'
              THEN coalesce((SELECT project_ref FROM keys WHERE ref = CAST(substr(credential, 9) AS INTEGER)), 0)
              ELSE 0 END,
         fingerprint, credential, secret, answer, created_at
  FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_by_project RENAME TO idempotency;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- Bytes of answers that were kept without having been paid for, by the hour in which they were stored.
CREATE TABLE free_answers (
  account_ref INTEGER NOT NULL,
  hour        INTEGER NOT NULL, -- since the epoch
  bytes       INTEGER NOT NULL,
  PRIMARY KEY (account_ref, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX free_answers_by_age ON free_answers (hour);

-- Charges of requests under an Idempotency-Key whose outcome is not known yet. One that a start finds is given back.
CREATE TABLE open_claims (
  id          INTEGER PRIMARY KEY,
  account_ref INTEGER NOT NULL,
  operation   TEXT    NOT NULL,
  cost        INTEGER NOT NULL
) STRICT;
