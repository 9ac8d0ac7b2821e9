-- The template of the endpoint when a delivery was made: all its attempts send the same bytes. Few deliveries have one.
CREATE TABLE relay_delivery_templates (
  relay_ref INTEGER PRIMARY KEY,
  template  TEXT    NOT NULL
) STRICT;
