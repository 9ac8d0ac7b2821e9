import type { Latencies } from "../../../kernel/data/latencies.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { HOUR_MS } from "../../../kernel/time/units.ts";
import type { HourCount } from "../domain.ts";
import type { UnsavedMonitors } from "../store.ts";
import type { Interval } from "./intervals.ts";

/** Number of checks of a monitor on one day. */
export interface DayCount {
  /** Start of the day in UTC, epoch milliseconds. */
  readonly day: number;
  readonly checks: number;
  readonly up: number;
  /** Sum of the latencies of its successful checks, milliseconds; null if it was not recorded for all of them. */
  readonly latencySum: number | null;
  /** How long they took; null if it was not recorded for all of them. */
  readonly latencies: Latencies | null;
  /** Time that its checks stood for, and the part of it that was up, in milliseconds. */
  readonly knownMs: number;
  readonly upMs: number;
}

/** How long no result of a monitor counted, by reason. */
export interface Unobserved {
  /** Milliseconds in which the server was offline. */
  readonly observerMs: number;
  /** Milliseconds in maintenance windows. */
  readonly maintenanceMs: number;
}

/** Counts of a day, and how long no result counted. */
export interface DayRow extends DayCount, Unobserved {}

/** A maintenance window of a monitor, or a schedule of windows that applies from `createdAt` on. */
export interface MonitorMaintenance extends Interval {
  readonly schedule: string | null;
  readonly tz: string | null;
  readonly durationMs: number | null;
  readonly createdAt: number;
}

export type DayStore = ReturnType<typeof dayStore>;

/** All SQL of daily counts. */
export function dayStore(db: Database, unsaved?: Pick<UnsavedMonitors, "monitor">) {
  const currentHour = db.one<HourCount, [ref: number]>(
    "SELECT hour, hour_checks AS checks, hour_up AS up, hour_latency AS latencySum, hour_latencies AS latencies, hour_known_ms AS knownMs, hour_up_ms AS upMs FROM monitor_states WHERE monitor_ref = ?",
  );
  return {
    /** Monitors in the order of their references, after a reference. */
    monitorsAfter: db.all<{ ref: number }, [ref: number, rowsMax: number]>(
      "SELECT ref FROM monitors WHERE ref > ? ORDER BY ref LIMIT ?",
    ),
    /** The last stored day, epoch milliseconds; 0 without any. */
    lastDay: db.number<[ref: number]>("SELECT max(day) AS n FROM monitor_days WHERE monitor_ref = ?"),
    /** Counts by day from the closed hours of a time range. */
    ofClosedHours: db.all<DayCount, [{ ref: number; from: number; until: number }]>(
      `SELECT hour - hour % 86400000 AS day, sum(checks) AS checks, sum(up) AS up,
         CASE WHEN count(latency) = count(*) THEN sum(latency) END AS latencySum,
         CASE WHEN count(latencies) = count(*) THEN group_concat(latencies, ' ') END AS latencies,
         sum(coalesce(known_ms, ${HOUR_MS})) AS knownMs, sum(coalesce(up_ms, up * ${HOUR_MS} / checks)) AS upMs FROM monitor_hours
       WHERE monitor_ref = $ref AND hour >= $from AND hour < $until GROUP BY 1 ORDER BY 1`,
    ),
    /** Counts of the current hour, which is not closed yet. */
    currentHour: (ref: number): HourCount | null => unsaved?.monitor(ref) ?? currentHour(ref),
    since: db.all<DayRow, [ref: number, day: number]>(
      `SELECT day, checks, up, latency AS latencySum, latencies, coalesce(known_ms, 24 * ${HOUR_MS}) AS knownMs,
         coalesce(up_ms, up * 24 * ${HOUR_MS} / checks) AS upMs, observer_ms AS observerMs, maintenance_ms AS maintenanceMs
       FROM monitor_days WHERE monitor_ref = ? AND day >= ? ORDER BY day`,
    ),
    /** Stores a day of a monitor that still exists. Does not replace higher counts: some hours of the day may be deleted. */
    save: db.change<[Readonly<DayRow & { ref: number }>]>(
      `INSERT INTO monitor_days (monitor_ref, day, checks, up, latency, latencies, known_ms, up_ms, observer_ms, maintenance_ms)
       SELECT $ref, $day, $checks, $up, $latencySum, $latencies, $knownMs, $upMs, $observerMs, $maintenanceMs FROM monitors WHERE ref = $ref
       ON CONFLICT DO UPDATE SET (checks, up, latency, latencies, known_ms, up_ms, observer_ms, maintenance_ms) =
         (excluded.checks, excluded.up, excluded.latency, excluded.latencies, excluded.known_ms, excluded.up_ms, excluded.observer_ms, excluded.maintenance_ms)
       WHERE excluded.checks >= checks`,
    ),
    removeBefore: db.change<[ref: number, day: number]>(
      "DELETE FROM monitor_days WHERE monitor_ref = ? AND day < ?",
    ),
    remove: db.change<[ref: number, rowsMax: number]>(
      "DELETE FROM monitor_days WHERE (monitor_ref, day) IN (SELECT monitor_ref, day FROM monitor_days WHERE monitor_ref = ? LIMIT ?)",
    ),
    /** Times in which the server was offline. */
    outages: db.all<Interval, [{ readonly from: number; readonly to: number }]>(
      `SELECT from_at AS "from", coalesce(to_at, $to) AS "to" FROM monitor_observer_outages
       WHERE from_at < $to AND coalesce(to_at, $to) > $from`,
    ),
    maintenanceOf: db.all<MonitorMaintenance, [monitorRef: number]>(
      `SELECT starts_at AS "from", ends_at AS "to", schedule, tz, duration_ms AS durationMs, created_at AS createdAt
       FROM monitor_maintained JOIN monitor_maintenance ON ref = maintenance_ref WHERE monitor_ref = ?`,
    ),
  };
}
