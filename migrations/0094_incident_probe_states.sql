-- What each probe saw when the incident was opened: a JSON array; null where only the server checked the monitor.
ALTER TABLE incidents ADD COLUMN probe_states TEXT;
