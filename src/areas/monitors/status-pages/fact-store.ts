import type { Database } from "../../../kernel/storage/database.ts";

/** An incident as a page reads it. */
export interface FactIncident {
  readonly ref: number;
  readonly id: string;
  readonly title: string;
  readonly titleGiven: number;
  readonly impact: "degraded" | "outage";
  readonly status: string;
  readonly isAuto: number;
  readonly isPublic: number;
  /** JSON. */
  readonly monitorIds: string;
  readonly startedAt: number;
  readonly resolvedAt: number | null;
}

/** Automatic incidents of a project that a page looks through at most: those of months, where monitors are steady. */
const WALKED_MAX = 500;

const INCIDENT = `SELECT ref, incident_id AS id, title, title_given AS titleGiven, impact, status, monitor_ref IS NOT NULL AS isAuto, public AS isPublic,
  monitor_ids AS monitorIds, started_at AS startedAt, resolved_at AS resolvedAt FROM incidents`;
const RECENT = "(resolved_at IS NULL OR resolved_at >= $since)";
type Asked = { readonly projectRef: number; readonly since: number; readonly rowsMax: number };

export type FactStore = ReturnType<typeof factStore>;

/** All SQL of what pages show beside checks. */
export function factStore(db: Database) {
  return {
    /** Told by people, and public. */
    manual: db.all<FactIncident, [Asked]>(
      `${INCIDENT} WHERE project_ref = $projectRef AND monitor_ref IS NULL AND public = 1 AND ${RECENT} ORDER BY ref DESC LIMIT $rowsMax`,
    ),
    automatic: db.all<FactIncident, [Asked]>(
      `${INCIDENT} WHERE monitor_ref IS NOT NULL AND ${RECENT} AND ref IN (
         SELECT ref FROM (SELECT ref FROM incidents WHERE project_ref = $projectRef ORDER BY ref DESC LIMIT ${WALKED_MAX})
         UNION SELECT ref FROM (SELECT ref FROM incidents WHERE project_ref = $projectRef AND resolved_at IS NULL LIMIT $rowsMax)
       ) ORDER BY ref DESC LIMIT $rowsMax`,
    ),
    incident: db.one<FactIncident, [incidentId: string, projectRef: number]>(
      `${INCIDENT} WHERE incident_id = ? AND project_ref = ?`,
    ),
    open: db.number("SELECT count(*) AS n FROM incidents WHERE resolved_at IS NULL"),
  };
}
