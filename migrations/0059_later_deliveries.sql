-- Deliveries of a message that were created after it, outside of its range: to endpoints that were disabled, or did not exist.
CREATE TABLE relay_later_deliveries (
  message_ref INTEGER NOT NULL,
  relay_ref   INTEGER NOT NULL,
  PRIMARY KEY (message_ref, relay_ref)
) STRICT, WITHOUT ROWID;
