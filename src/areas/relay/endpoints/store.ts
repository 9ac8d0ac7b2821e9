import type { ManagedBy } from "../../../kernel/resources/managed.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { References } from "../../../kernel/storage/references.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { SECRET_FIELDS, type SealedValues } from "./secret-settings.ts";

/** Stored states. A deleted endpoint is hidden; its row, which then has only its URL, is removed after its deliveries. */
export const [LIVE, PAUSED, DISABLED, DELETED] = [1, 2, 3, 4] as const;
/** Stored states of the breaker: closed, open until the next probe, or waiting for the outcome of a probe. */
export const [CLOSED, OPEN, PROBING] = [0, 1, 2] as const;

export type Health = {
  readonly state: number;
  readonly disabled_reason: string | null;
  readonly breaker: number;
  /** Failed attempts since the last success. */
  readonly failures: number;
  /** Time of the first of them. */
  readonly failing_since: number | null;
  /** Failed probes since the breaker opened. */
  readonly probes: number;
  readonly next_probe_at: number | null;
  readonly last_status: number | null;
  readonly last_error: string | null;
  /** Whether it has parked deliveries, see `EndpointDispatch`: 1 or 0. Further ones are parked behind them. */
  readonly holds: number;
  /** Time of the last notice about failed deliveries, and the number of failed ones since. */
  readonly noticed_at: number | null;
  readonly unnoticed: number;
  /** The delivery that blocks the others until its retry, on an ordered endpoint. */
  readonly retrying_ref: number | null;
};

export type EndpointRow = Health &
  SealedValues & {
    readonly ref: number;
    readonly endpoint_id: string;
    readonly accountRef: number;
    readonly projectRef: number;
    readonly name: string | null;
    readonly owner_id: string | null;
    /** JSON. */
    readonly terms: string;
    readonly created_at: number;
    readonly updated_at: number;
    readonly managed_by: ManagedBy;
  };

/** JSON; null for none. Read when it is needed: it may be longer than the rest of the row. */
type Described = { readonly metadata: string | null };
type Changed = Pick<EndpointRow, "ref" | "name" | "terms" | "updated_at"> & SealedValues;
type Referenced = { readonly ref: number };

const HEALTH =
  "state, disabled_reason, breaker, failures, failing_since, probes, next_probe_at, last_status, last_error, holds, noticed_at, unnoticed, retrying_ref";
const SECRETS = SECRET_FIELDS.join(", ");
const COLUMNS = `ref, endpoint_id, account_ref AS accountRef, project_ref AS projectRef, name, owner_id, terms, ${SECRETS}, ${HEALTH}, created_at, updated_at, managed_by`;

export type EndpointStore = ReturnType<typeof endpointStore>;

/** Columns as named values of a statement, and as assignments of them. */
const parameters = (columns: string): string => columns.replaceAll(/(\w+)/g, "$$$1");
const assigned = (columns: string): string => columns.replaceAll(/(\w+)/g, "$1 = $$$1");

/** All SQL of endpoints. */
export function endpointStore(db: Database) {
  const emptied = SECRET_FIELDS.map((name) => `${name} = NULL`).join(", ");
  const references = new References(db, "relay_endpoints", "relay_endpoints_highest_removed");
  const remove = db.change<[ref: number]>("DELETE FROM relay_endpoints WHERE ref = ?");
  return {
    /** The largest reference so far, including removed endpoints: jobs and lanes still have those. */
    highestRef: references.highest,
    insert: db.change<[row: EndpointRow & Described]>(
      `INSERT INTO relay_endpoints (ref, endpoint_id, account_ref, project_ref, name, owner_id, metadata, terms, ${SECRETS}, ${HEALTH}, created_at, updated_at, managed_by)
       VALUES ($ref, $endpoint_id, $accountRef, $projectRef, $name, $owner_id, $metadata, $terms, ${parameters(SECRETS)}, ${parameters(HEALTH)}, $created_at, $updated_at, $managed_by)`,
    ),
    find: db.one<EndpointRow, [ref: number]>(`SELECT ${COLUMNS} FROM relay_endpoints WHERE ref = ?`),
    /** A project's endpoints that are not deleted, oldest first. */
    ofProject: db.all<EndpointRow, [projectRef: number]>(
      `SELECT ${COLUMNS} FROM relay_endpoints WHERE project_ref = ? AND state < 4 ORDER BY ref`,
    ),
    /** The reference of an endpoint, also of a deleted one, whose deliveries are still listed; 0 when it does not exist. */
    refOf: db.number<[endpointId: string, projectRef: number]>(
      "SELECT ref AS n FROM relay_endpoints WHERE endpoint_id = ? AND project_ref = ?",
    ),
    change: db.change<[row: Changed]>(
      `UPDATE relay_endpoints SET name = $name, terms = $terms, ${assigned(SECRETS)}, updated_at = $updated_at WHERE ref = $ref`,
    ),
    metadataOf: db.one<Described, [ref: number]>("SELECT metadata FROM relay_endpoints WHERE ref = ?"),
    setMetadata: db.change<[metadata: string | null, ref: number]>(
      "UPDATE relay_endpoints SET metadata = ? WHERE ref = ?",
    ),
    setHealth: db.change<[health: Health & Referenced]>(
      `UPDATE relay_endpoints SET ${assigned(HEALTH)} WHERE ref = $ref`,
    ),
    /** Empties the row: deliveries need only its id and URL. */
    markDeleted: db.change<[now: number, ref: number]>(
      `UPDATE relay_endpoints SET state = 4, name = NULL, metadata = NULL, ${emptied}, terms = json_object('url', terms ->> '$.url'),
       disabled_reason = NULL, last_error = NULL, updated_at = ? WHERE ref = ?`,
    ),
    /**
     * Whether an endpoint has deliveries. While deliveries of any message wait to be stored, they may be its own: their
     * endpoints are in no index, and few messages wait for long.
     */
    mayHaveDeliveries: db.number<[ref: number]>(
      "SELECT EXISTS (SELECT 1 FROM relays WHERE endpoint_ref = ?) OR EXISTS (SELECT 1 FROM relay_fan_outs) AS n",
    ),
    /** The number of a project's endpoints deleted after a time whose deliveries are stored; `ownerId`: null for those of all owners. */
    deletedSince: db.number<[projectRef: number, time: number, ownerId: string | null]>(
      `SELECT count(*) AS n FROM relay_endpoints INDEXED BY relay_endpoints_deleted_of_project
       WHERE project_ref = ?1 AND state = 4 AND updated_at > ?2 AND (?3 IS NULL OR owner_id = ?3)`,
    ),
    /** Deliveries of an endpoint with a status that were finished since a time, among the newest `countedMax`. */
    finishedSince: db.number<[ref: number, status: number, countedMax: number, since: number]>(
      "SELECT count(*) AS n FROM (SELECT finished_at FROM relays WHERE endpoint_ref = ? AND status = ? ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ?",
    ),
    /** The number of unfinished deliveries, counted up to `countedMax`. */
    waiting: db.number<[ref: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE endpoint_ref = ? AND status IN (1, 2) LIMIT ?)",
    ),
    /** Unfinished deliveries after a reference, oldest first. With both statuses in one condition, all of them would be read and sorted. */
    waitingAfter: db.all<Referenced, [ref: number, after: number, limit: number]>(
      `SELECT ref FROM (SELECT ref FROM relays WHERE endpoint_ref = ?1 AND status = 1 AND ref > ?2 ORDER BY ref LIMIT ?3)
       UNION ALL SELECT ref FROM (SELECT ref FROM relays WHERE endpoint_ref = ?1 AND status = 2 AND ref > ?2 ORDER BY ref LIMIT ?3)
       ORDER BY ref LIMIT ?3`,
    ),
    ...parkedStore(db),
    /** Endpoints deleted before a time that have no deliveries. */
    deletedBefore: db.all<Referenced, [time: number, limit: number]>(
      `SELECT ref FROM relay_endpoints AS e WHERE state = 4 AND updated_at < ?
       AND NOT EXISTS (SELECT 1 FROM relays WHERE endpoint_ref = e.ref) ORDER BY updated_at LIMIT ?`,
    ),
    someOfProject: db.all<Referenced, [projectRef: number, limit: number]>(
      "SELECT ref FROM relay_endpoints WHERE project_ref = ? LIMIT ?",
    ),
    remove(tx: Tx, ref: number): void {
      references.removed(tx, ref);
      remove(tx, ref);
    },
  };
}

/** Due deliveries that wait until their endpoint accepts deliveries again. */
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
    /** Removes the oldest parked deliveries of an endpoint and returns them in the order in which they were accepted. */
    unpark(tx: Tx, endpointRef: number, limit: number): Referenced[] {
      const found = oldest(endpointRef, limit);
      if (found.length > 0) remove(tx, endpointRef, found.length);
      return found;
    },
    removeParked: remove,
    /** Removes the parked deliveries up to and including one. */
    unparkThrough: db.change<[endpointRef: number, relayRef: number]>(
      "DELETE FROM relay_parked WHERE endpoint_ref = ? AND relay_ref <= ?",
    ),
    /** Removes one delivery if it is parked. */
    unparkOne: db.change<[endpointRef: number, relayRef: number]>(
      "DELETE FROM relay_parked WHERE endpoint_ref = ? AND relay_ref = ?",
    ),
  };
}
