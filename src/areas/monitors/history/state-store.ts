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

/** A stretch of time, epoch milliseconds. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Maintenance of a monitor: its window, or its schedule since it was made. */
export interface FactMaintenance extends Stretch {
  readonly schedule: string | null;
  readonly tz: string | null;
  readonly durationMs: number | null;
  readonly createdAt: number;
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
    /** Times in which this server's own line was cut, that touch a stretch. */
    outages: db.all<Stretch, [{ readonly from: number; readonly until: number }]>(
      `SELECT from_at AS "from", coalesce(to_at, $until) AS "to" FROM monitor_observer_outages
       WHERE from_at < $until AND coalesce(to_at, $until) > $from`,
    ),
    maintenanceOf: db.all<FactMaintenance, [monitorRef: number]>(
      `SELECT starts_at AS "from", ends_at AS "to", schedule, tz, duration_ms AS durationMs, created_at AS createdAt
       FROM monitor_maintained JOIN monitor_maintenance ON ref = maintenance_ref WHERE monitor_ref = ?`,
    ),
  };
}
