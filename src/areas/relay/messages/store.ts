import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";

/** A message as it is stored, without its payload. */
export type MessageItem = {
  readonly ref: number;
  readonly message_id: string;
  readonly event_type: string;
  /** The customer to whose endpoints it goes. */
  readonly owner_id: string | null;
  /** JSON; null when there are none. */
  readonly channels: string | null;
  readonly scheduled_for: number;
  readonly created_at: number;
  /** The schedule that sent it, at its time `scheduled_for`. */
  readonly schedule_id: string | null;
  /** The key that its deliveries are ordered by. */
  readonly order_key: string | null;
};

/** A message without its payload, which may be long. */
export type MessageRow = MessageItem & {
  /** 0 when the payload is deleted. */
  readonly has_payload: number;
  readonly first_ref: number;
  readonly deliveries: number;
};

/** A message with its payload. */
export type MessageContent = MessageRow & {
  /** JSON; null when it is deleted. */
  readonly payload: string | null;
};

export type NewMessage = Omit<MessageContent, "has_payload"> & {
  readonly projectRef: number;
  readonly deduplication_id: string | null;
  readonly purge_at: number;
  /** JSON: what does not fit the schema of its type; null for nothing. */
  readonly schema_errors: string | null;
};

export type MessageDelivery = {
  readonly ref: number;
  readonly relay_id: Uint8Array;
  readonly endpointRef: number;
  readonly endpoint_id: string;
  readonly status: number;
  readonly attempts: number;
  readonly response_status: number | null;
  readonly error: string | null;
  readonly finished_at: number | null;
};

/** The deliveries of a message that are not stored yet. */
export type FanOutRow = {
  readonly message_ref: number;
  readonly account_ref: number;
  readonly uuid: string;
  /** JSON: the endpoint's reference for each delivery. */
  readonly endpoints: string;
  /** Number of stored deliveries. */
  readonly stored: number;
  readonly last_ref: number;
};
type FanOutWithMessage = FanOutRow & { readonly project_ref: number } & Pick<
    MessageRow,
    "first_ref" | "event_type" | "scheduled_for" | "created_at" | "schedule_id" | "order_key"
  >;

const ORDER_KEY = "(SELECT order_key FROM relay_message_order AS o WHERE o.message_ref = ref) AS order_key";
const ITEM = `ref, message_id, event_type, owner_id, channels, scheduled_for, created_at, schedule_id, ${ORDER_KEY}`;
const COLUMNS = `${ITEM}, payload IS NOT NULL AS has_payload, first_ref, deliveries`;

const DELIVERY = `ref, relay_id, endpoint_ref AS endpointRef, (SELECT endpoint_id FROM relay_endpoints AS e WHERE e.ref = endpoint_ref) AS endpoint_id,
       status, attempts, response_status, error, finished_at`;
const LATER = "SELECT relay_ref FROM relay_later_deliveries WHERE message_ref = ?3";

export type MessageStore = ReturnType<typeof messageStore>;

/** All SQL of messages. */
export function messageStore(db: Database) {
  const insert = db.change<[row: Omit<NewMessage, "order_key" | "schema_errors">]>(
    `INSERT INTO relay_messages (ref, project_ref, message_id, event_type, owner_id, channels, payload, deduplication_id, first_ref, deliveries,
       scheduled_for, created_at, schedule_id, purge_at) VALUES ($ref, $projectRef, $message_id, $event_type, $owner_id, $channels, $payload, $deduplication_id,
       $first_ref, $deliveries, $scheduled_for, $created_at, $schedule_id, $purge_at)`,
  );
  const insertOrder = db.change<[ref: number, key: string]>(
    "INSERT INTO relay_message_order (message_ref, order_key) VALUES (?, ?)",
  );
  const insertSchemaErrors = db.change<[ref: number, errors: string]>(
    "INSERT INTO relay_message_schema_errors (message_ref, errors) VALUES (?, ?)",
  );
  const removeSchemaErrors = db.change<[ref: number]>(
    "DELETE FROM relay_message_schema_errors WHERE message_ref = ?",
  );
  const removeOrder = db.change<[ref: number]>("DELETE FROM relay_message_order WHERE message_ref = ?");
  const remove = db.change<[ref: number]>("DELETE FROM relay_messages WHERE ref = ?");
  const removeLater = db.change<[messageRef: number]>(
    "DELETE FROM relay_later_deliveries WHERE message_ref = ?",
  );
  const { removeFanOut, ...fanOuts } = fanOutStore(db);
  return {
    ...fanOuts,
    removeFanOut,
    highestRef: db.number("SELECT max(ref) AS n FROM relay_messages"),
    insert(tx: Tx, { order_key, schema_errors, ...row }: NewMessage): void {
      insert(tx, row);
      if (schema_errors !== null) insertSchemaErrors(tx, row.ref, schema_errors);
      if (order_key !== null) insertOrder(tx, row.ref, order_key);
    },
    find: db.one<MessageRow, [ref: number]>(`SELECT ${COLUMNS} FROM relay_messages WHERE ref = ?`),
    content: db.one<MessageContent, [ref: number]>(
      `SELECT ${COLUMNS}, payload FROM relay_messages WHERE ref = ?`,
    ),
    /** What of a message does not fit the schema of its type. */
    schemaErrors: db.one<{ readonly errors: string }, [ref: number]>(
      "SELECT errors FROM relay_message_schema_errors WHERE message_ref = ?",
    ),
    /** The newest message with an id, which can be reused after its retention. */
    findById: db.one<MessageRow, [projectRef: number, messageId: string]>(
      `SELECT ${COLUMNS} FROM relay_messages WHERE project_ref = ? AND message_id = ? ORDER BY ref DESC LIMIT 1`,
    ),
    findByDeduplication: db.one<MessageRow, [projectRef: number, id: string]>(
      `SELECT ${COLUMNS} FROM relay_messages WHERE project_ref = ? AND deduplication_id = ? ORDER BY ref DESC LIMIT 1`,
    ),
    /** The messages of a project after a reference, oldest first. */
    after: db.all<MessageRow, [projectRef: number, after: number, limit: number]>(
      `SELECT ${COLUMNS} FROM relay_messages WHERE project_ref = ? AND ref > ? ORDER BY ref LIMIT ?`,
    ),
    page: db.all<MessageItem, [projectRef: number, before: number, limit: number]>(
      `SELECT ${ITEM} FROM relay_messages WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    /** The messages to a customer, newest first. */
    pageOfOwner: db.all<MessageRow, [projectRef: number, ownerId: string, before: number, limit: number]>(
      `SELECT ${COLUMNS} FROM relay_messages WHERE project_ref = ? AND owner_id = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
    ),
    /** The deliveries of a message, in the order of its endpoints. */
    deliveries: db.all<MessageDelivery, [firstRef: number, count: number, ref: number]>(
      `SELECT ${DELIVERY} FROM relays WHERE ref >= ?1 AND ref < ?1 + ?2 AND message_ref = ?3
       UNION ALL SELECT ${DELIVERY} FROM relays WHERE ref IN (${LATER}) AND message_ref = ?3 ORDER BY ref`,
    ),
    /** The delivery of a message to an endpoint. The plus signs keep it from the index by endpoint, with all deliveries of that endpoint. */
    deliveryTo: db.one<
      Pick<MessageDelivery, "ref" | "status">,
      [firstRef: number, count: number, ref: number, endpointRef: number]
    >(
      `SELECT ref, status FROM relays WHERE ref >= ?1 AND ref < ?1 + ?2 AND message_ref = ?3 AND +endpoint_ref = ?4
       UNION ALL SELECT ref, status FROM relays WHERE ref IN (${LATER}) AND message_ref = ?3 AND +endpoint_ref = ?4 LIMIT 1`,
    ),
    /** Adds a delivery that is created after its message. */
    addLater: db.change<[messageRef: number, relayRef: number, projectRef: number, ownerId: string | null]>(
      "INSERT INTO relay_later_deliveries (message_ref, relay_ref, project_ref, owner_id) VALUES (?, ?, ?, ?)",
    ),
    /** Number of a message's deliveries that were created after it, including those that are deleted. */
    laterDeliveries: db.number<[messageRef: number]>(
      "SELECT count(*) AS n FROM relay_later_deliveries WHERE message_ref = ?",
    ),
    /** The deliveries to a customer that were created after their messages, newest first, including those that are deleted. */
    laterOfOwner: db.all<
      { readonly ref: number },
      [projectRef: number, ownerId: string, before: number, limit: number]
    >(
      `SELECT relay_ref AS ref FROM relay_later_deliveries WHERE project_ref = ? AND owner_id = ? AND relay_ref < ?
       ORDER BY relay_ref DESC LIMIT ?`,
    ),
    /** Whether a message has deliveries. */
    hasDeliveries: db.number<[firstRef: number, count: number, ref: number]>(
      `SELECT EXISTS (SELECT 1 FROM relays WHERE ref >= ?1 AND ref < ?1 + ?2 AND message_ref = ?3)
       OR EXISTS (SELECT 1 FROM relays WHERE ref IN (${LATER}) AND message_ref = ?3) AS n`,
    ),
    /** Whether a message has unfinished deliveries. */
    hasOpenDeliveries: db.number<[firstRef: number, count: number, ref: number]>(
      `SELECT EXISTS (SELECT 1 FROM relays WHERE ref >= ?1 AND ref < ?1 + ?2 AND message_ref = ?3 AND finished_at IS NULL)
       OR EXISTS (SELECT 1 FROM relays WHERE ref IN (${LATER}) AND message_ref = ?3 AND finished_at IS NULL)
       OR EXISTS (SELECT 1 FROM relay_fan_outs WHERE message_ref = ?3) AS n`,
    ),
    /** Messages that are due for a check. */
    toPurge: db.all<MessageRow, [now: number, limit: number]>(
      `SELECT ${COLUMNS} FROM relay_messages WHERE purge_at <= ? ORDER BY purge_at LIMIT ?`,
    ),
    recheckAt: db.change<[time: number, ref: number]>("UPDATE relay_messages SET purge_at = ? WHERE ref = ?"),
    dropPayload: db.change<[time: number, ref: number]>(
      "UPDATE relay_messages SET payload = NULL, purge_at = ? WHERE ref = ?",
    ),
    remove(tx: Tx, ref: number): number {
      removeFanOut(tx, ref);
      removeLater(tx, ref);
      removeOrder(tx, ref);
      removeSchemaErrors(tx, ref);
      return remove(tx, ref);
    },
    someOfProject: db.all<{ readonly ref: number }, [projectRef: number, limit: number]>(
      "SELECT ref FROM relay_messages WHERE project_ref = ? LIMIT ?",
    ),
  };
}

/** Statements of deliveries that are not stored yet. */
function fanOutStore(db: Database) {
  return {
    insertFanOut: db.change<[row: FanOutRow]>(
      `INSERT INTO relay_fan_outs (message_ref, account_ref, uuid, endpoints, stored, last_ref)
       VALUES ($message_ref, $account_ref, $uuid, $endpoints, $stored, $last_ref)`,
    ),
    findFanOut: db.one<FanOutWithMessage, [messageRef: number]>(
      `SELECT message_ref, account_ref, uuid, endpoints, stored, last_ref, project_ref, first_ref, event_type, scheduled_for, created_at,
       schedule_id, ${ORDER_KEY} FROM relay_fan_outs JOIN relay_messages ON ref = message_ref WHERE message_ref = ?`,
    ),
    setStored: db.change<[stored: number, messageRef: number]>(
      "UPDATE relay_fan_outs SET stored = ? WHERE message_ref = ?",
    ),
    removeFanOut: db.change<[messageRef: number]>("DELETE FROM relay_fan_outs WHERE message_ref = ?"),
  };
}
