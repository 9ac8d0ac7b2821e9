-- Of a restored chain: what the restore has noted (JSON), until the server has declared the restore in the chain; null otherwise.
ALTER TABLE chains ADD COLUMN restored TEXT;
-- Where others have seen a longer history (JSON): the chain signs nothing until that is accepted; null otherwise.
ALTER TABLE chains ADD COLUMN fork TEXT;
-- Backups of earlier versions: their chains may have signed checkpoints since.
UPDATE chains SET epoch = epoch + 1, restored = (SELECT value FROM settings WHERE name = 'restored')
WHERE EXISTS (SELECT 1 FROM settings WHERE name = 'restored');
