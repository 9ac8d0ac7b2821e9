-- Unfinished deliveries with an order key: of an endpoint and key, one is sent at a time, in the order of their positions.
CREATE TABLE relay_order (
  position     INTEGER PRIMARY KEY,
  endpoint_ref INTEGER NOT NULL,
  order_key    TEXT    NOT NULL,
  relay_ref    INTEGER NOT NULL,
  state        INTEGER NOT NULL -- 1 it is due later, 2 held without a job, 3 the head, which holds the others, 4 it holds them no more
) STRICT;
CREATE INDEX relay_order_of_key ON relay_order (endpoint_ref, order_key, state, position);
CREATE UNIQUE INDEX relay_order_of_delivery ON relay_order (relay_ref);

-- The keys that messages were sent with. A column of relay_messages would stand behind the payload.
CREATE TABLE relay_message_order (
  message_ref INTEGER PRIMARY KEY,
  order_key   TEXT    NOT NULL
) STRICT;
