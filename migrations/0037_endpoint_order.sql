ALTER TABLE relay_endpoints ADD COLUMN retrying_ref INTEGER; -- of one that keeps the order: the delivery whose retry the others wait for
