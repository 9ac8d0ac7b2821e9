import type { Database } from "../../../kernel/storage/database.ts";

/** What the checks of one day came to. */
export interface DayCount {
  /** Epoch milliseconds of its beginning, UTC. */
  readonly day: number;
  readonly checks: number;
  readonly up: number;
}

/** A day that is over, and for how long nothing was counted in it. */
export interface DayRow extends DayCount {
  readonly observerMs: number;
  readonly maintenanceMs: number;
}

export type DayStore = ReturnType<typeof dayStore>;

/** All SQL of daily figures. */
export function dayStore(db: Database) {
  return {
    /** References above one, in order: the monitors whose days are folded in one slice. */
    monitorsAfter: db.all<{ ref: number }, [ref: number, rowsMax: number]>(
      "SELECT ref FROM monitors WHERE ref > ? ORDER BY ref LIMIT ?",
    ),
    /** The last day that was folded, epoch milliseconds; 0 for none. */
    lastDay: db.number<[ref: number]>("SELECT max(day) AS n FROM monitor_days WHERE monitor_ref = ?"),
    /** What hours between two moments come to by day: those that are closed, and the one that is being counted. */
    ofHours: db.all<DayCount, [{ ref: number; from: number; until: number }]>(
      `SELECT hour - hour % 86400000 AS day, sum(checks) AS checks, sum(up) AS up FROM (
         SELECT hour, checks, up FROM monitor_hours WHERE monitor_ref = $ref AND hour >= $from AND hour < $until
         UNION ALL SELECT hour, hour_checks, hour_up FROM monitor_states
         WHERE monitor_ref = $ref AND hour_checks > 0 AND hour >= $from AND hour < $until
       ) GROUP BY 1 ORDER BY 1`,
    ),
    since: db.all<DayRow, [ref: number, day: number]>(
      `SELECT day, checks, up, observer_ms AS observerMs, maintenance_ms AS maintenanceMs
       FROM monitor_days WHERE monitor_ref = ? AND day >= ? ORDER BY day`,
    ),
    /** Keeps what hours come to; where some of a day's hours are gone, what they came to before stands. */
    fold: db.change<[Readonly<DayRow & { ref: number }>]>(
      `INSERT INTO monitor_days (monitor_ref, day, checks, up, observer_ms, maintenance_ms)
       VALUES ($ref, $day, $checks, $up, $observerMs, $maintenanceMs)
       ON CONFLICT DO UPDATE SET (checks, up, observer_ms, maintenance_ms) =
         (excluded.checks, excluded.up, excluded.observer_ms, excluded.maintenance_ms)
       WHERE excluded.checks >= checks`,
    ),
    removeBefore: db.change<[ref: number, day: number]>(
      "DELETE FROM monitor_days WHERE monitor_ref = ? AND day < ?",
    ),
    remove: db.change<[ref: number, rowsMax: number]>(
      "DELETE FROM monitor_days WHERE (monitor_ref, day) IN (SELECT monitor_ref, day FROM monitor_days WHERE monitor_ref = ? LIMIT ?)",
    ),
  };
}
