import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { TargetStatus } from "../schema.ts";

/** The number that stands for the server among the probes of a monitor. */
export const LOCAL_REF = 0;

/** What one probe, or the server, has seen of a monitor. */
export interface Voter {
  /** {@link LOCAL_REF} for the server. */
  readonly probeRef: number;
  readonly name: string;
  /** Whether it is silent, or was never seen. */
  readonly isOffline: boolean;
  readonly status: TargetStatus;
  readonly latencyMs: number | null;
  /** Epoch milliseconds; null before its first check. */
  readonly lastCheckedAt: number | null;
  readonly consecutiveFailures: number;
  /** Whether the target is up, but slow. */
  readonly degraded: boolean;
  readonly streak: number;
  readonly error: string | null;
}

type StoredVoter = Omit<Voter, "isOffline" | "degraded"> & {
  readonly isOffline: number;
  readonly degraded: number;
};

export type VoteStore = ReturnType<typeof voteStore>;

/** All SQL of what probes see of monitors. */
export function voteStore(db: Database) {
  const voters = db.all<StoredVoter, [monitorRef: number]>(
    `SELECT votes.probe_ref AS probeRef, coalesce(probes.name, 'local') AS name,
       votes.probe_ref <> 0 AND (probes.offline = 1 OR probes.last_seen_at IS NULL) AS isOffline,
       CASE status WHEN 1 THEN 'up' WHEN 2 THEN 'down' ELSE 'unknown' END AS status, latency_ms AS latencyMs,
       checked_at AS lastCheckedAt, consecutive_failures AS consecutiveFailures, degraded, streak, error
     FROM monitor_votes AS votes LEFT JOIN probes ON probes.ref = votes.probe_ref
     WHERE votes.monitor_ref = ? AND (votes.probe_ref = 0 OR probes.ref IS NOT NULL) ORDER BY votes.probe_ref`,
  );
  const save = db.change<[Readonly<Record<string, string | number | null>>]>(
    `UPDATE monitor_votes SET status = CASE $status WHEN 'up' THEN 1 WHEN 'down' THEN 2 ELSE 3 END, latency_ms = $latencyMs,
       checked_at = $lastCheckedAt, consecutive_failures = $consecutiveFailures, degraded = $degraded, streak = $streak,
       error = $error WHERE monitor_ref = $monitorRef AND probe_ref = $probeRef`,
  );
  return {
    /** Those that check a monitor, the server first, without removed ones; none if only the server does. */
    voters: (monitorRef: number): Voter[] =>
      voters(monitorRef).map((row) => ({
        ...row,
        isOffline: row.isOffline !== 0,
        degraded: row.degraded !== 0,
      })),
    /** Stores what one of them has seen. */
    save(tx: Tx, monitorRef: number, voter: Voter): void {
      const { probeRef, status, latencyMs, lastCheckedAt, consecutiveFailures, degraded, streak, error } =
        voter;
      save(tx, {
        monitorRef,
        probeRef,
        status,
        latencyMs,
        lastCheckedAt,
        consecutiveFailures,
        degraded: Number(degraded),
        streak,
        error,
      });
    },
    add: db.change<[monitorRef: number, probeRef: number]>(
      "INSERT OR IGNORE INTO monitor_votes (monitor_ref, probe_ref) VALUES (?, ?)",
    ),
    remove: db.change<[monitorRef: number, probeRef: number]>(
      "DELETE FROM monitor_votes WHERE monitor_ref = ? AND probe_ref = ?",
    ),
    removeAll: db.change<[monitorRef: number]>("DELETE FROM monitor_votes WHERE monitor_ref = ?"),
    /** What was seen before says nothing any more: another target, or a pause. */
    reset: db.change<[monitorRef: number]>(
      "UPDATE monitor_votes SET status = 3, latency_ms = NULL, checked_at = NULL, consecutive_failures = 0, degraded = 0, streak = 0, error = NULL WHERE monitor_ref = ?",
    ),
    /** Whether a probe checks a monitor. */
    has: db.number<[monitorRef: number, probeRef: number]>(
      "SELECT 1 AS n FROM monitor_votes WHERE monitor_ref = ? AND probe_ref = ?",
    ),
    /** Number of monitors of a probe, counted up to a limit. */
    countOf: db.number<[probeRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM monitor_votes WHERE probe_ref = ? LIMIT ?)",
    ),
    /** References of monitors of a probe, in their order, after a reference. */
    monitorsOf: db.all<{ readonly ref: number }, [probeRef: number, after: number, rowsMax: number]>(
      "SELECT monitor_ref AS ref FROM monitor_votes WHERE probe_ref = ? AND monitor_ref > ? ORDER BY monitor_ref LIMIT ?",
    ),
    /** A monitor that only this probe checks; 0 for none. */
    onlyOf: db.number<[probeRef: number]>(
      `SELECT monitor_ref AS n FROM monitor_votes AS one WHERE probe_ref = ?
       AND NOT EXISTS (SELECT 1 FROM monitor_votes AS other WHERE other.monitor_ref = one.monitor_ref AND other.probe_ref <> one.probe_ref
         AND (other.probe_ref = 0 OR EXISTS (SELECT 1 FROM probes WHERE probes.ref = other.probe_ref))) LIMIT 1`,
    ),
    /** Removes a probe from the settings of its first monitors, unless another one has its name by now. */
    removeFromSettings: db.change<
      [
        {
          readonly name: string;
          readonly probeRef: number;
          readonly now: number;
          readonly rowsMax: number;
        },
      ]
    >(
      `UPDATE monitors SET version = version + 1, updated_at = $now, options = json_set(options, '$.probes',
         json((SELECT json_group_array(value) FROM json_each(options, '$.probes') WHERE value <> $name)))
       WHERE ref IN (SELECT monitor_ref FROM monitor_votes WHERE probe_ref = $probeRef ORDER BY monitor_ref LIMIT $rowsMax)
         AND NOT EXISTS (SELECT 1 FROM monitor_votes AS other JOIN probes ON probes.ref = other.probe_ref
           WHERE other.monitor_ref = monitors.ref AND other.probe_ref <> $probeRef AND probes.name = $name)`,
    ),
    /** Removes the votes of a probe on its first monitors. Returns how many. */
    removeOfProbe: db.change<[{ readonly probeRef: number; readonly rowsMax: number }]>(
      `DELETE FROM monitor_votes WHERE probe_ref = $probeRef
         AND monitor_ref IN (SELECT monitor_ref FROM monitor_votes WHERE probe_ref = $probeRef ORDER BY monitor_ref LIMIT $rowsMax)`,
    ),
  };
}
