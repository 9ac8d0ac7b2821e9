-- Open manual incidents: the states of manual monitors follow from them, and a project has few.
CREATE INDEX incidents_open_by_people ON incidents (project_ref, ref) WHERE monitor_ref IS NULL AND resolved_at IS NULL;

-- When a confirmed subscriber was carried over from another status page, epoch milliseconds; null: they subscribed here.
ALTER TABLE status_subscribers ADD COLUMN imported_at INTEGER;
