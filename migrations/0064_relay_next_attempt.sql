-- Time of the next attempt of a delivery that is being retried; null for those whose last attempt was before this migration.
ALTER TABLE relays ADD COLUMN next_attempt_at INTEGER;
