-- Who manages a resource: 'apply' for what `ninefold apply` has created, NULL for all others.
ALTER TABLE channels ADD COLUMN managed_by TEXT;
ALTER TABLE monitor_maintenance ADD COLUMN managed_by TEXT;
ALTER TABLE status_pages ADD COLUMN managed_by TEXT;
ALTER TABLE incidents ADD COLUMN managed_by TEXT;
ALTER TABLE relay_schedules ADD COLUMN managed_by TEXT;
ALTER TABLE monitors ADD COLUMN managed_by TEXT;
ALTER TABLE relay_endpoints ADD COLUMN managed_by TEXT;
ALTER TABLE catch_buckets ADD COLUMN managed_by TEXT;
ALTER TABLE flags ADD COLUMN managed_by TEXT;
ALTER TABLE keys ADD COLUMN managed_by TEXT;
