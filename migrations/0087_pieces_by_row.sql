-- Pieces lie in the order in which they were written, and an index finds them. Without a row id the pieces would stand in the tree of
-- the key, where each comparison of a key reads a whole piece: to write one, several others were read.
CREATE TABLE catch_pieces_by_row (
  upload INTEGER NOT NULL,
  number INTEGER NOT NULL, -- from 0
  bytes  BLOB    NOT NULL,
  PRIMARY KEY (upload, number)
) STRICT;
INSERT INTO catch_pieces_by_row (upload, number, bytes) SELECT upload, number, bytes FROM catch_pieces ORDER BY upload, number;
DROP TABLE catch_pieces;
ALTER TABLE catch_pieces_by_row RENAME TO catch_pieces;
