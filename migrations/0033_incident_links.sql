-- Where the links of a message begin and end, as JSON; null where the message was stored before its links were.
ALTER TABLE incident_updates ADD COLUMN links TEXT;

-- Whether a person gave the title: that of a monitor may contain a host, which status pages do not show.
ALTER TABLE incidents ADD COLUMN title_given INTEGER NOT NULL DEFAULT 0;
UPDATE incidents SET title_given = 1 WHERE monitor_ref IS NULL OR title NOT LIKE '% is down';
