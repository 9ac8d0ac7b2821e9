-- Witnesses that the checkpoints of a chain are sent to.
CREATE TABLE notary_witnesses (
  chain_ref   INTEGER NOT NULL,
  position    INTEGER NOT NULL, -- order in which they were given
  name        TEXT    NOT NULL,
  url         TEXT    NOT NULL, -- submission prefix
  vkey        TEXT    NOT NULL,
  epoch       INTEGER NOT NULL, -- whose checkpoint was last cosigned
  size        INTEGER NOT NULL, -- of that checkpoint; 0: none
  cosigned_at INTEGER,          -- epoch ms
  last_error  TEXT,
  PRIMARY KEY (chain_ref, position)
) STRICT, WITHOUT ROWID;

-- Signature lines of witnesses below the checkpoints of chains.
CREATE TABLE notary_cosignatures (
  ref       INTEGER PRIMARY KEY,
  chain_ref INTEGER NOT NULL,
  epoch     INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  vkey      TEXT    NOT NULL,
  line      TEXT    NOT NULL,
  signed_at INTEGER NOT NULL, -- epoch ms, as the witness says
  UNIQUE (chain_ref, epoch, size, vkey)
) STRICT;

-- This server as a witness: its key, and the newest checkpoint that it cosigned of each origin.
CREATE TABLE notary_witness_key (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  private_key BLOB    NOT NULL -- sealed
) STRICT;
CREATE TABLE notary_witnessed (
  origin_hash TEXT    PRIMARY KEY, -- SHA-256 of the origin, hex
  size        INTEGER NOT NULL,
  root        BLOB    NOT NULL,
  note        TEXT    NOT NULL -- with the signature of the log and the cosignature
) STRICT, WITHOUT ROWID;
