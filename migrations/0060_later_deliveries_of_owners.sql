-- The customer of the message, so that lists of a customer's deliveries find those that were created later.
ALTER TABLE relay_later_deliveries ADD COLUMN project_ref INTEGER;
ALTER TABLE relay_later_deliveries ADD COLUMN owner_id TEXT;
UPDATE relay_later_deliveries SET (project_ref, owner_id) =
  (SELECT project_ref, owner_id FROM relay_messages WHERE ref = message_ref);
CREATE INDEX relay_later_deliveries_by_owner ON relay_later_deliveries (project_ref, owner_id, relay_ref) WHERE owner_id IS NOT NULL;
