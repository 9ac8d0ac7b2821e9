-- Endpoints of the account's customers.
ALTER TABLE relay_endpoints ADD COLUMN owner_id TEXT; -- chosen by the account; null: the account's own
ALTER TABLE relay_endpoints ADD COLUMN metadata TEXT; -- JSON; null when there is none
-- Whose endpoints a message went to: its deliveries belong to this owner, also after the endpoint has got another one.
ALTER TABLE relay_messages ADD COLUMN owner_id TEXT;
CREATE INDEX relay_messages_by_owner ON relay_messages (project_ref, owner_id, ref) WHERE owner_id IS NOT NULL;
