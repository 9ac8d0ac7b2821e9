import type { Database } from "../../../kernel/storage/database.ts";

/** Recent status changes of a monitor, and whether it is flapping. */
export type FlappingRow = {
  /** JSON: times of the last changes, epoch milliseconds, oldest first. */
  readonly changes: string;
  readonly flapping: number;
};

export type SuppressionStore = ReturnType<typeof suppressionStore>;

/** All SQL of dependencies, flapping, and times in which the server was offline. */
export function suppressionStore(db: Database) {
  return {
    parentOf: db.number<[ref: number]>("SELECT parent_ref AS n FROM monitor_parents WHERE monitor_ref = ?"),
    childOf: db.all<{ readonly ref: number }, [parentRef: number]>(
      "SELECT monitor_ref AS ref FROM monitor_parents WHERE parent_ref = ?",
    ),
    setParent: db.change<[ref: number, parentRef: number]>(
      "INSERT OR REPLACE INTO monitor_parents (monitor_ref, parent_ref) VALUES (?, ?)",
    ),
    /** Length of the longest chain of monitors that depend on a monitor: 0, 1, or 2 for two and more. */
    generationsBelow: db.number<[ref: number]>(
      `SELECT max(1 + EXISTS (SELECT 1 FROM monitor_parents AS lower WHERE lower.parent_ref = upper.monitor_ref)) AS n
       FROM monitor_parents AS upper WHERE parent_ref = ?`,
    ),
    removeParent: db.change<[ref: number]>("DELETE FROM monitor_parents WHERE monitor_ref = ?"),
    removeChildren: db.change<[parentRef: number]>("DELETE FROM monitor_parents WHERE parent_ref = ?"),

    flapping: db.one<FlappingRow, [ref: number]>(
      "SELECT changes, flapping FROM monitor_quiet WHERE monitor_ref = ?",
    ),
    setFlapping: db.change<[FlappingRow & { readonly ref: number }]>(
      "INSERT OR REPLACE INTO monitor_quiet (monitor_ref, changes, flapping) VALUES ($ref, $changes, $flapping)",
    ),
    removeFlapping: db.change<[ref: number]>("DELETE FROM monitor_quiet WHERE monitor_ref = ?"),

    /** Start of the current outage, epoch milliseconds; 0 for none. */
    outage: db.number("SELECT max(from_at) AS n FROM monitor_observer_outages WHERE to_at IS NULL"),
    beginOutage: db.change<[from: number]>(
      "INSERT OR REPLACE INTO monitor_observer_outages (from_at) VALUES (?)",
    ),
    endOutage: db.change<[to: number]>("UPDATE monitor_observer_outages SET to_at = ? WHERE to_at IS NULL"),
    removeOutages: db.change<[before: number]>("DELETE FROM monitor_observer_outages WHERE from_at < ?"),

    /** The next project with monitors, by reference; 0 after the last. */
    projectAfter: db.number<[projectRef: number]>(
      "SELECT min(project_ref) AS n FROM monitors WHERE project_ref > ?",
    ),
    /** Number of accounts with monitors: 0, 1, or 2 for two and more. */
    accounts: db.number(
      "SELECT count(*) AS n FROM (SELECT 1 FROM account_counts WHERE kind = 'monitors' AND count > 0 LIMIT 2)",
    ),
    /** Active monitors that check a target, in the order of their references, after a reference. */
    checkedAfter: db.all<
      { readonly ref: number; readonly accountRef: number; readonly url: string },
      [ref: number, rowsMax: number]
    >(
      "SELECT ref, account_ref AS accountRef, url FROM monitors WHERE ref > ? AND active = 1 AND type NOT IN ('heartbeat', 'manual') ORDER BY ref LIMIT ?",
    ),
  };
}
