import { column, flag, once, type RowOf, resourceTable } from "../../../kernel/resources/table.ts";
import type { Database } from "../../../kernel/storage/database.ts";

const MAINTENANCE = {
  name: "monitor_maintenance",
  id: "maintenance_id",
  columns: {
    title: column<string>(),
    message: column<string>(),
    /** The window, or the current or next one of recurring windows; epoch milliseconds. */
    starts_at: column<number>(),
    ends_at: column<number>(),
    /** Cron expression; null for a single window. */
    schedule: column<string | null>(),
    tz: column<string | null>(),
    duration_ms: column<number | null>(),
    public: flag(),
    /** Whether the window is open and its start was notified. */
    begun: flag(),
    createdAt: once(column<number>()),
    updatedAt: column<number>(),
  },
};

export type MaintenanceRow = RowOf<typeof MAINTENANCE>;
export type MaintenanceStore = ReturnType<typeof maintenanceStore>;

/** All SQL of maintenance. */
export function maintenanceStore(db: Database) {
  return {
    ...resourceTable(db, MAINTENANCE),
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
    /** Whether a public window of a monitor is open at a time: 1 or 0. */
    isPublicAt: db.number<[monitorRef: number, at: number, at: number]>(
      `SELECT 1 AS n FROM monitor_maintained JOIN monitor_maintenance ON ref = maintenance_ref
       WHERE monitor_ref = ? AND public = 1 AND starts_at <= ? AND ends_at > ? LIMIT 1`,
    ),
  };
}
