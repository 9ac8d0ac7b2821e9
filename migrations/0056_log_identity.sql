-- Which commit log the position belongs to: a random id of 32 hex digits. Null: a position of an archive alone, or one that was
-- stored before logs had an identity.
ALTER TABLE replica_position ADD COLUMN log TEXT;
