-- One recurring job in place of one for each purge: no version knows these kinds of jobs any more.
DELETE FROM jobs WHERE kind IN (
  'audit.purge', 'catch.forget-seen', 'catch.purge', 'catch.retention', 'idempotency.purge', 'keys.purge', 'keys.usage.purge',
  'meter.holds.purge', 'monitors.purge', 'relay.messages.purge', 'relay.purge', 'sessions.purge'
);
