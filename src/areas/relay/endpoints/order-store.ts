import type { Database } from "../../../kernel/storage/database.ts";

/** States of a delivery with an order key; stored by number. */
export const [LATER, HELD, HEAD, PASSED] = [1, 2, 3, 4] as const;

/** A delivery with an order key. */
export type OrderRow = {
  readonly position: number;
  readonly endpointRef: number;
  readonly order_key: string;
  readonly ref: number;
  readonly state: number;
};

const COLUMNS = "position, endpoint_ref AS endpointRef, order_key, relay_ref AS ref, state";

export type OrderStore = ReturnType<typeof orderStore>;

/** All SQL of the order of deliveries. */
export function orderStore(db: Database) {
  return {
    /** Appends a delivery to its key. */
    insert: db.change<[row: Omit<OrderRow, "position">]>(
      "INSERT INTO relay_order (endpoint_ref, order_key, relay_ref, state) VALUES ($endpointRef, $order_key, $ref, $state)",
    ),
    find: db.one<OrderRow, [relayRef: number]>(`SELECT ${COLUMNS} FROM relay_order WHERE relay_ref = ?`),
    setState: db.change<[state: number, position: number]>(
      "UPDATE relay_order SET state = ? WHERE position = ?",
    ),
    remove: db.change<[relayRef: number]>("DELETE FROM relay_order WHERE relay_ref = ?"),
    /** Whether a key has a delivery that holds others. */
    isHeld: db.number<[endpointRef: number, key: string]>(
      "SELECT EXISTS (SELECT 1 FROM relay_order WHERE endpoint_ref = ? AND order_key = ? AND state IN (2, 3)) AS n",
    ),
    /** The oldest delivery that is held by its key. */
    nextHeld: db.one<OrderRow, [endpointRef: number, key: string]>(
      `SELECT ${COLUMNS} FROM relay_order WHERE endpoint_ref = ? AND order_key = ? AND state = 2 ORDER BY position LIMIT 1`,
    ),
    removeOfEndpoint: db.change<[endpointRef: number, limit: number]>(
      "DELETE FROM relay_order WHERE position IN (SELECT position FROM relay_order WHERE endpoint_ref = ? LIMIT ?)",
    ),
  };
}
