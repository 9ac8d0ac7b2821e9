CREATE TABLE chains (
  ref         INTEGER PRIMARY KEY,
  project_ref INTEGER NOT NULL UNIQUE, -- one chain per project
  chain_id    TEXT    NOT NULL UNIQUE,
  public_key  TEXT    NOT NULL,        -- the x of its JSON Web Key, base64url
  private_key BLOB    NOT NULL,        -- the seed under the master key
  created_at  INTEGER NOT NULL         -- epoch ms
) STRICT;

-- Append-only. Each hash stands once: content_hash is taken from the log again, and prev_hash is the chain_hash of
-- the receipt before.
CREATE TABLE receipts (
  id         INTEGER PRIMARY KEY,
  chain_ref  INTEGER NOT NULL,
  sequence   INTEGER NOT NULL, -- from 1, without a gap
  at         INTEGER NOT NULL, -- epoch ms
  chain_hash BLOB    NOT NULL,
  signature  BLOB    NOT NULL,
  log        TEXT    NOT NULL  -- the exact JSON that was hashed
) STRICT;
CREATE UNIQUE INDEX receipts_by_sequence ON receipts (chain_ref, sequence);

-- Where a project's receipts are copied to. The newest row is in force; earlier ones say where older copies lie.
CREATE TABLE receipt_stores (
  ref               INTEGER PRIMARY KEY,
  project_ref       INTEGER NOT NULL,
  endpoint          TEXT    NOT NULL,
  bucket            TEXT    NOT NULL,
  region            TEXT    NOT NULL,
  prefix            TEXT    NOT NULL,
  access_key_id     TEXT    NOT NULL,
  secret_access_key BLOB    NOT NULL, -- under the master key
  last_error        TEXT,             -- why the last delivery failed, until nothing is buffered
  created_at        INTEGER NOT NULL  -- epoch ms
) STRICT;
CREATE INDEX receipt_stores_by_project ON receipt_stores (project_ref, ref);

-- The copies of receipts made since a store was configured.
CREATE TABLE receipt_copies (
  chain_ref INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  store_ref INTEGER, -- where the copy lies; null while it is buffered
  PRIMARY KEY (chain_ref, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_copies_buffered ON receipt_copies (chain_ref, sequence) WHERE store_ref IS NULL;
