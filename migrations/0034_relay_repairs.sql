ALTER TABLE relay_messages ADD COLUMN schedule_id TEXT; -- of the schedule that sent it; scheduled_for is the time of its run

-- An earlier version forgot deliveries of an endpoint that was enabled while its deliveries were being ended: they have
-- not ended, and have neither a job nor a row in relay_parked. They wait for their endpoint again, or are ended with it.
INSERT OR IGNORE INTO relay_parked (endpoint_ref, relay_ref)
  SELECT e.ref, r.ref FROM relay_endpoints AS e JOIN relays AS r ON r.endpoint_ref = e.ref AND r.status IN (1, 2)
  WHERE r.ref NOT IN (
    SELECT CASE json_type(payload) WHEN 'object' THEN json_extract(payload, '$.ref') ELSE CAST(payload AS INTEGER) END
    FROM jobs WHERE kind = 'relay.deliver'
  );
UPDATE relay_endpoints SET holds = 1
  WHERE state IN (1, 2) AND EXISTS (SELECT 1 FROM relay_parked WHERE endpoint_ref = ref);
INSERT OR IGNORE INTO jobs (kind, key, due_at, lane, payload, attempt)
  SELECT CASE WHEN state = 1 THEN 'relay.endpoint.release' ELSE 'relay.endpoint.end' END, CAST(ref AS TEXT), 0, '',
    CASE WHEN state = 1 THEN 'null' ELSE '0' END, 0
  FROM relay_endpoints WHERE state <> 2 AND (state <> 1 OR breaker = 0)
    AND EXISTS (SELECT 1 FROM relay_parked WHERE endpoint_ref = ref);
INSERT OR IGNORE INTO jobs (kind, key, due_at, lane, payload, attempt)
  SELECT 'relay.endpoint.probe', CAST(ref AS TEXT), 0, '', 'null', 0
  FROM relay_endpoints WHERE state = 1 AND breaker = 1 AND next_probe_at IS NULL
    AND EXISTS (SELECT 1 FROM relay_parked WHERE endpoint_ref = ref);
