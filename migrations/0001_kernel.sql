-- Small facts about the file itself.
CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Durable jobs: enqueued in the transaction that causes them, removed in the one that records their outcome.
CREATE TABLE jobs (
  id      INTEGER PRIMARY KEY,
  kind    TEXT    NOT NULL,
  key     TEXT,             -- null: a job that nobody replaces or takes back
  due_at  INTEGER NOT NULL, -- epoch milliseconds
  lane    TEXT    NOT NULL, -- jobs of one lane go to one place and share its limits; empty where there are none
  payload TEXT    NOT NULL, -- JSON
  attempt INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX jobs_by_key ON jobs (kind, key) WHERE key IS NOT NULL;
-- Covers the search for what is due: which job, when, in which lane.
CREATE INDEX jobs_by_due ON jobs (kind, due_at, lane);

-- First answers of requests that carried an Idempotency-Key, sealed under the master key.
CREATE TABLE idempotency (
  account_ref INTEGER NOT NULL,
  key         TEXT    NOT NULL,
  fingerprint BLOB    NOT NULL, -- SHA-256 of method, target and body
  credential  TEXT    NOT NULL,
  secret      INTEGER NOT NULL, -- 1: given again to the same credential only
  answer      BLOB    NOT NULL,
  created_at  INTEGER NOT NULL, -- epoch milliseconds
  PRIMARY KEY (account_ref, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
