-- What stands for the log of a receipt without one: of a log that was never sent, or that was deleted. Apart from the
-- receipts, whose rows begin as before; their log is then empty.
CREATE TABLE receipts_without_log (
  chain_ref    INTEGER NOT NULL,
  sequence     INTEGER NOT NULL,
  content_hash BLOB    NOT NULL,
  note         TEXT,    -- sent in place of the log; null without one
  redacted_at  INTEGER, -- epoch ms; null if nothing was deleted
  PRIMARY KEY (chain_ref, sequence)
) STRICT, WITHOUT ROWID;

-- Receipts by the values of indexed fields.
CREATE TABLE receipt_values (
  chain_ref INTEGER NOT NULL,
  hash      BLOB    NOT NULL, -- first 8 bytes of the SHA-256 of field and value
  sequence  INTEGER NOT NULL,
  PRIMARY KEY (chain_ref, hash, sequence)
) STRICT, WITHOUT ROWID;
-- To remove the values of a receipt whose log is deleted.
CREATE INDEX receipt_values_by_receipt ON receipt_values (chain_ref, sequence);

ALTER TABLE chains ADD COLUMN index_fields TEXT; -- JSON Pointers (JSON); null for none
ALTER TABLE chains ADD COLUMN retain_days INTEGER NOT NULL DEFAULT 0; -- 0: for ever
ALTER TABLE chains ADD COLUMN retained_after INTEGER NOT NULL DEFAULT 0; -- logs up to this position are deleted by age
CREATE INDEX chains_with_retention ON chains (ref) WHERE retain_days > 0;
