import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";

/** As the rows have them; a deleted one is shown no more, and its row goes after its deliveries. */
export const [LIVE, PAUSED, DISABLED, DELETED] = [1, 2, 3, 4] as const;
/** Whether an endpoint gets what is due, only a probe now and then, or waits for the end of one. */
export const [CLOSED, OPEN, PROBING] = [0, 1, 2] as const;

/** How an endpoint is. */
export type Health = {
  readonly state: number;
  readonly disabled_reason: string | null;
  readonly breaker: number;
  /** Attempts that failed since the last that did not. */
  readonly failures: number;
  /** When the first of them ended. */
  readonly failing_since: number | null;
  /** Probes that failed since the breaker opened. */
  readonly probes: number;
  readonly next_probe_at: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  /** Whether some of its due deliveries are parked: 1 or 0. */
  readonly holds: number;
  /** When it was last said that a delivery had failed, and how many have since. */
  readonly noticed_at: number | null;
  readonly unnoticed: number;
  /** Of one that keeps the order: the delivery whose retry the others wait for. */
  readonly retrying_ref: number | null;
};

/** An endpoint as it is stored. */
export type EndpointRow = Health & {
  readonly ref: number;
  readonly endpoint_id: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly name: string | null;
  /** JSON. */
  readonly terms: string;
  /** Sealed JSON. */
  readonly headers: Uint8Array | null;
  readonly created_at: number;
  readonly updated_at: number;
};

type Changed = Pick<EndpointRow, "ref" | "name" | "terms" | "headers" | "updated_at">;
type Referenced = { readonly ref: number };

const HEALTH =
  "state, disabled_reason, breaker, failures, failing_since, probes, next_probe_at, last_status, last_error, holds, noticed_at, unnoticed, retrying_ref";
const COLUMNS = `ref, endpoint_id, account_ref AS accountRef, project_ref AS projectRef, name, terms, headers, ${HEALTH}, created_at, updated_at`;

export type EndpointStore = ReturnType<typeof endpointStore>;

/** All SQL of endpoints. */
export function endpointStore(db: Database) {
  const health = HEALTH.split(", ").map((name) => `${name} = $${name}`);
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM relay_endpoints"),
    insert: db.change<[row: EndpointRow]>(
      `INSERT INTO relay_endpoints (ref, endpoint_id, account_ref, project_ref, name, terms, headers, ${HEALTH}, created_at, updated_at)
       VALUES ($ref, $endpoint_id, $accountRef, $projectRef, $name, $terms, $headers, ${HEALTH.replaceAll(/(\w+)/g, "$$$1")}, $created_at, $updated_at)`,
    ),
    find: db.one<EndpointRow, [ref: number]>(`SELECT ${COLUMNS} FROM relay_endpoints WHERE ref = ?`),
    /** Of a project, those that are not deleted, in the order in which they were made. */
    ofProject: db.all<EndpointRow, [projectRef: number]>(
      `SELECT ${COLUMNS} FROM relay_endpoints WHERE project_ref = ? AND state < 4 ORDER BY ref`,
    ),
    /** Also of a deleted one, whose deliveries are still shown; 0 where there is none. */
    refOf: db.number<[endpointId: string, projectRef: number]>(
      "SELECT ref AS n FROM relay_endpoints WHERE endpoint_id = ? AND project_ref = ?",
    ),
    change: db.change<[row: Changed]>(
      "UPDATE relay_endpoints SET name = $name, terms = $terms, headers = $headers, updated_at = $updated_at WHERE ref = $ref",
    ),
    setHealth: db.change<[health: Health & Referenced]>(
      `UPDATE relay_endpoints SET ${health.join(", ")} WHERE ref = $ref`,
    ),
    markDeleted: db.change<[now: number, ref: number]>(
      "UPDATE relay_endpoints SET state = 4, name = NULL, headers = NULL, updated_at = ? WHERE ref = ?",
    ),
    /** Deliveries of an endpoint with a status that ended since a moment, among the newest so many. */
    endedSince: db.number<[ref: number, status: number, countedMax: number, since: number]>(
      "SELECT count(*) AS n FROM (SELECT finished_at FROM relays WHERE endpoint_ref = ? AND status = ? ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ?",
    ),
    /** Those that have not ended, counted to a figure. */
    waiting: db.number<[ref: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE endpoint_ref = ? AND status IN (1, 2) LIMIT ?)",
    ),
    /** The same, oldest first after a reference. */
    waitingAfter: db.all<Referenced, [ref: number, after: number, limit: number]>(
      "SELECT ref FROM relays WHERE endpoint_ref = ? AND status IN (1, 2) AND ref > ? ORDER BY ref LIMIT ?",
    ),
    ...parkedStore(db),
    /** Deleted ones whose deliveries are gone, or have not been looked at yet. */
    deletedBefore: db.all<Referenced, [moment: number, limit: number]>(
      `SELECT ref FROM relay_endpoints AS e WHERE state = 4 AND updated_at < ?
       AND NOT EXISTS (SELECT 1 FROM relays WHERE endpoint_ref = e.ref) ORDER BY updated_at LIMIT ?`,
    ),
    someOfProject: db.all<Referenced, [projectRef: number, limit: number]>(
      "SELECT ref FROM relay_endpoints WHERE project_ref = ? LIMIT ?",
    ),
    remove: db.change<[ref: number]>("DELETE FROM relay_endpoints WHERE ref = ?"),
  };
}

/** Due deliveries that wait until their endpoint takes some again. */
function parkedStore(db: Database) {
  const remove = db.change<[endpointRef: number, limit: number]>(
    "DELETE FROM relay_parked WHERE (endpoint_ref, relay_ref) IN (SELECT endpoint_ref, relay_ref FROM relay_parked WHERE endpoint_ref = ? ORDER BY relay_ref LIMIT ?)",
  );
  const oldest = db.all<Referenced, [endpointRef: number, limit: number]>(
    "SELECT relay_ref AS ref FROM relay_parked WHERE endpoint_ref = ? ORDER BY relay_ref LIMIT ?",
  );
  return {
    park: db.change<[endpointRef: number, relayRef: number]>(
      "INSERT OR IGNORE INTO relay_parked (endpoint_ref, relay_ref) VALUES (?, ?)",
    ),
    /** Takes out the oldest parked deliveries of an endpoint, in the order in which they were accepted. */
    unpark(tx: Tx, endpointRef: number, limit: number): Referenced[] {
      const found = oldest(endpointRef, limit);
      if (found.length > 0) remove(tx, endpointRef, found.length);
      return found;
    },
    removeParked: remove,
    /** Takes out those up to a delivery, which is included. */
    unparkThrough: db.change<[endpointRef: number, relayRef: number]>(
      "DELETE FROM relay_parked WHERE endpoint_ref = ? AND relay_ref <= ?",
    ),
    /** Takes out one delivery, if it is parked. */
    unparkOne: db.change<[endpointRef: number, relayRef: number]>(
      "DELETE FROM relay_parked WHERE endpoint_ref = ? AND relay_ref = ?",
    ),
  };
}
