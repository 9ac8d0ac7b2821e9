import type { Impact } from "../../kernel/data/incident-words.ts";
import type { Database } from "../../kernel/storage/database.ts";

/** Fields of a stored incident that pages show. */
export interface StoredIncident {
  readonly ref: number;
  readonly id: string;
  readonly title: string;
  readonly titleGiven: number;
  readonly impact: Impact;
  readonly status: string;
  readonly isAuto: number;
  readonly isPublic: number;
  /** JSON array of ids. */
  readonly monitorIds: string;
  readonly startedAt: number;
  readonly resolvedAt: number | null;
}

/** Number of newest incidents of a project that are searched for recent automatic ones: usually those of several months. */
const SEARCHED_MAX = 500;

const INCIDENT = `SELECT ref, incident_id AS id, title, title_given AS titleGiven, impact, status, monitor_ref IS NOT NULL AS isAuto, public AS isPublic,
  monitor_ids AS monitorIds, started_at AS startedAt, resolved_at AS resolvedAt FROM incidents`;
const RECENT = "(resolved_at IS NULL OR resolved_at >= $since)";
type IncidentQuery = { readonly projectRef: number; readonly since: number; readonly rowsMax: number };

/** All SQL of the incidents on status pages. */
export function pageIncidentStore(db: Database) {
  return {
    /** Public manual incidents. */
    manual: db.all<StoredIncident, [IncidentQuery]>(
      `${INCIDENT} WHERE project_ref = $projectRef AND monitor_ref IS NULL AND public = 1 AND ${RECENT} ORDER BY ref DESC LIMIT $rowsMax`,
    ),
    automatic: db.all<StoredIncident, [IncidentQuery]>(
      `${INCIDENT} WHERE monitor_ref IS NOT NULL AND ${RECENT} AND ref IN (
         SELECT ref FROM (SELECT ref FROM incidents WHERE project_ref = $projectRef ORDER BY ref DESC LIMIT ${SEARCHED_MAX})
         UNION SELECT ref FROM (SELECT ref FROM incidents WHERE project_ref = $projectRef AND resolved_at IS NULL LIMIT $rowsMax)
       ) ORDER BY ref DESC LIMIT $rowsMax`,
    ),
    incident: db.one<StoredIncident, [incidentId: string, projectRef: number]>(
      `${INCIDENT} WHERE incident_id = ? AND project_ref = ?`,
    ),
  };
}
