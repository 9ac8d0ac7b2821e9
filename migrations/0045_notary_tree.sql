-- The Merkle tree over the receipts. Its leaves stand apart from the receipts: 256 of them are a few pages, however large the
-- logs are, and receipts stay append-only.
CREATE TABLE receipt_leaves (
  chain_ref INTEGER NOT NULL,
  sequence  INTEGER NOT NULL,
  hash      BLOB    NOT NULL,
  PRIMARY KEY (chain_ref, sequence)
) STRICT, WITHOUT ROWID;

-- The roots of full tiles: of 256 leaves at level 0, of 256 roots of the level below at every other.
CREATE TABLE notary_tile_roots (
  chain_ref INTEGER NOT NULL,
  level     INTEGER NOT NULL,
  tile      INTEGER NOT NULL, -- from 0
  hash      BLOB    NOT NULL,
  PRIMARY KEY (chain_ref, level, tile)
) STRICT, WITHOUT ROWID;

-- Signed checkpoints. The note follows from these fields.
CREATE TABLE notary_checkpoints (
  chain_ref INTEGER NOT NULL,
  epoch     INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  root      BLOB    NOT NULL,
  signature BLOB    NOT NULL,
  signed_at INTEGER NOT NULL, -- epoch ms
  PRIMARY KEY (chain_ref, epoch, size)
) STRICT, WITHOUT ROWID;

ALTER TABLE chains ADD COLUMN origin TEXT; -- of its checkpoints; null for one that is derived from the chain id
ALTER TABLE chains ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- raised by a restore
ALTER TABLE chains ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0; -- whether checkpoint and tiles can be read without a key
-- The first receipts whose leaves a background job adds: those of earlier versions. 0 once the tree is complete.
ALTER TABLE chains ADD COLUMN tree_backlog INTEGER NOT NULL DEFAULT 0;
UPDATE chains SET tree_backlog = coalesce((SELECT max(sequence) FROM receipts WHERE chain_ref = chains.ref), 0);
