-- URLs that the outcome of a delivery is sent to, and the delivery whose outcome a callback is. Few deliveries have either.
CREATE TABLE relay_callbacks (
  relay_ref            INTEGER PRIMARY KEY,
  callback_url         TEXT,
  failure_callback_url TEXT,
  callback_of          BLOB -- UUID; of a delivery of kind 4
) STRICT;

ALTER TABLE relay_schedules ADD COLUMN callback_url TEXT;
ALTER TABLE relay_schedules ADD COLUMN failure_callback_url TEXT;
