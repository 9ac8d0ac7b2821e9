import type { Database } from "../../../kernel/storage/database.ts";

/** Settings of maintenance, and its current or next window. */
export type MaintenanceSettings = {
  readonly title: string;
  readonly message: string;
  /** Epoch milliseconds. */
  readonly starts_at: number;
  readonly ends_at: number;
  /** Cron expression; null for a single window. */
  readonly schedule: string | null;
  readonly tz: string | null;
  readonly duration_ms: number | null;
  readonly public: number;
};

export interface MaintenanceRow extends MaintenanceSettings {
  readonly ref: number;
  readonly maintenanceId: string;
  readonly projectRef: number;
  readonly begun: number;
  readonly created_at: number;
  readonly updated_at: number;
}

const SETTINGS = "title, message, starts_at, ends_at, schedule, tz, duration_ms, public";
const VALUES = "$title, $message, $starts_at, $ends_at, $schedule, $tz, $duration_ms, $public";
const SELECT = `SELECT ref, maintenance_id AS maintenanceId, project_ref AS projectRef, begun, created_at, updated_at, ${SETTINGS} FROM monitor_maintenance`;

type Identity = Pick<MaintenanceRow, "ref" | "maintenanceId" | "projectRef">;

export type MaintenanceStore = ReturnType<typeof maintenanceStore>;

/** All SQL of maintenance. */
export function maintenanceStore(db: Database) {
  return {
    /** The highest reference ever used; 0 for none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'monitor_maintenance'"),
    insert: db.change<[MaintenanceSettings & Identity & { readonly now: number }]>(
      `INSERT INTO monitor_maintenance (ref, maintenance_id, project_ref, ${SETTINGS}, begun, created_at, updated_at) VALUES ($ref, $maintenanceId, $projectRef, ${VALUES}, 0, $now, $now)`,
    ),
    update: db.change<[MaintenanceSettings & { readonly ref: number; readonly now: number }]>(
      `UPDATE monitor_maintenance SET (${SETTINGS}) = (${VALUES}), updated_at = $now WHERE ref = $ref`,
    ),
    move: db.change<[starts: number, ends: number, begun: number, ref: number]>(
      "UPDATE monitor_maintenance SET starts_at = ?, ends_at = ?, begun = ? WHERE ref = ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM monitor_maintenance WHERE ref = ?"),
    row: db.one<MaintenanceRow, [ref: number]>(`${SELECT} WHERE ref = ?`),
    find: db.one<MaintenanceRow, [maintenanceId: string]>(`${SELECT} WHERE maintenance_id = ?`),
    /** Maintenance of a project below a reference, newest first. There are few rows: callers filter by status. */
    page: db.all<MaintenanceRow, [projectRef: number, before: number, rowsMax: number]>(
      `${SELECT} WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    count: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM monitor_maintenance WHERE project_ref = ?",
    ),
    addMonitor: db.change<[monitorRef: number, ref: number]>(
      "INSERT OR IGNORE INTO monitor_maintained (monitor_ref, maintenance_ref) VALUES (?, ?)",
    ),
    removeMonitors: db.change<[ref: number]>("DELETE FROM monitor_maintained WHERE maintenance_ref = ?"),
    forget: db.change<[monitorRef: number]>("DELETE FROM monitor_maintained WHERE monitor_ref = ?"),
    monitorsOf: db.all<{ readonly ref: number }, [ref: number]>(
      "SELECT monitor_ref AS ref FROM monitor_maintained WHERE maintenance_ref = ? ORDER BY monitor_ref",
    ),
    idsOf: db.all<{ readonly id: Uint8Array }, [ref: number]>(
      `SELECT monitor_id AS id FROM monitor_maintained JOIN monitors ON monitors.ref = monitor_ref
       WHERE maintenance_ref = ? ORDER BY monitor_ref`,
    ),
    /** Whether a monitor has any maintenance: 1 or 0. Runs at every check; a join would take ten times as long. */
    hasWindows: db.number<[monitorRef: number]>(
      "SELECT 1 AS n FROM monitor_maintained WHERE monitor_ref = ? LIMIT 1",
    ),
    /** End of the last window of a monitor that is open at a time; 0 for none. */
    endFor: db.number<[monitorRef: number, at: number, at: number]>(
      `SELECT max(ends_at) AS n FROM monitor_maintained JOIN monitor_maintenance ON ref = maintenance_ref
       WHERE monitor_ref = ? AND starts_at <= ? AND ends_at > ?`,
    ),
  };
}
