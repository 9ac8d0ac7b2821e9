-- Set: the account is deleted, and what is left of it is being removed.
ALTER TABLE accounts ADD COLUMN deleted_at INTEGER;
-- Keys of deleted projects, which the other indexes of an account's keys leave out.
CREATE INDEX keys_emptied ON keys (account_ref) WHERE deleted = 1;
