-- Messages whose deliveries are not all stored yet: the job relay.messages.fan-out of such a message stores the rest.
CREATE TABLE relay_fan_outs (
  message_ref INTEGER PRIMARY KEY,
  account_ref INTEGER NOT NULL,
  uuid        TEXT    NOT NULL, -- the ids of the deliveries are this one with their references in it
  endpoints   TEXT    NOT NULL, -- JSON: a reference for each delivery
  stored      INTEGER NOT NULL, -- deliveries that are stored
  last_ref    INTEGER NOT NULL  -- reference of the last delivery
) STRICT;
