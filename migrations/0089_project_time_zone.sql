-- The time zone of times in texts for people: alerts, e-mails and status pages. An IANA name.
ALTER TABLE projects ADD COLUMN time_zone TEXT NOT NULL DEFAULT 'UTC';
