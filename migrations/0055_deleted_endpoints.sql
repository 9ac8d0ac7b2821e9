-- What remains of a deleted endpoint while its deliveries are listed: its URL.
UPDATE relay_endpoints
SET terms = json_object('url', terms ->> '$.url'), disabled_reason = NULL, last_error = NULL
WHERE state = 4;

-- Those that were deleted in the last day count towards the limits of their project and owner.
CREATE INDEX relay_endpoints_deleted_of_project ON relay_endpoints (project_ref, updated_at) WHERE state = 4;
