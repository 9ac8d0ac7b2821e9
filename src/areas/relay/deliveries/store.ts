import { bytesToUuid, uuidToBytes } from "../../../kernel/data/uuid.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { References } from "../../../kernel/storage/references.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { RELAY_FAILURES, RELAY_KINDS, type RelayFailure } from "../domain.ts";
import { RELAY_STATUSES, type RelayAttempt, type RelayItem, type RelayStatus } from "./schema.ts";

/** A delivery without its content. */
export interface RelayRow {
  readonly ref: number;
  readonly projectRef: number;
  /** The stored status: it does not include a first attempt in flight. */
  readonly item: RelayItem;
}

/** A delivery without the body that its attempts send, which may be large. */
export interface RelayDelivery extends RelayRow {
  readonly accountRef: number;
  /** Set for a message's delivery. */
  readonly endpointRef: number | null;
  readonly messageRef: number | null;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  /** JSON: the delays as given; null for the default. */
  readonly retry_schedule: string | null;
  /** Null for the default. */
  readonly timeout_ms: number | null;
  /** Sealed URL and headers of an unsigned notification; null to use `target_url`. */
  readonly destination: Uint8Array | null;
  /** Attempts before the last resend. */
  readonly attempts_before: number;
  /** Number of the failure, from 1; null unless failed, and when the content is deleted. */
  readonly failure: number | null;
  /** Whether its outcome is sent to a callback URL. */
  readonly hasCallback: boolean;
  /** JSON: the template that makes the body; null for a delivery without one. */
  readonly template: string | null;
}
type RelayTerms = Omit<RelayDelivery, keyof RelayRow | "hasCallback"> & { readonly hasCallback: 0 | 1 };

interface RelayBodies {
  readonly body: string | null;
  /** Body that is not JSON; replaces `body`. */
  readonly body_bytes: Uint8Array | null;
}
type RelayContent = RelayTerms & RelayBodies;

/** A delivery with the content that its attempts send. */
export type RelayRequest = RelayDelivery & RelayBodies;

/** An inbound event that a bucket has received. */
export interface InboundEvent {
  readonly bucket_id: string;
  readonly event_id: string;
}

/** The inbound event that is delivered; null for other deliveries. */
export function eventOf({ item: { bucket_id, event_id } }: Pick<RelayRow, "item">): InboundEvent | null {
  return bucket_id === null || event_id === null ? null : { bucket_id, event_id };
}

/** A delivery of an inbound event. */
export type EventDelivery = Pick<
  RelayItem,
  "status" | "attempts" | "response_status" | "error" | "finished_at"
> & {
  readonly relay_id: string;
  readonly endpoint_id: string;
};

/** An attempt to deliver an inbound event. */
export type EventDeliveryAttempt = Pick<
  AttemptRow,
  "started_at" | "duration_ms" | "response_status" | "error"
> &
  Pick<Exchange, "response_body"> & { readonly endpoint_id: string };

/** Properties that few deliveries have. */
export type RelayExtras = Pick<RelayRequest, "body_bytes" | "retry_schedule" | "timeout_ms" | "destination"> &
  Pick<RelayItem, "schedule_id">;

/** The account and the project that deliveries belong to. */
export type DeliveryOwner = Pick<RelayRequest, "accountRef" | "projectRef">;

export type NewRelay = Pick<RelayRequest, "ref" | "projectRef" | "accountRef" | "headers" | "body"> &
  Pick<RelayItem, "relay_id" | "kind" | "event" | "monitor_id" | "target_url" | "method" | "scheduled_for">;

/** A new delivery to an endpoint, whose content is stored elsewhere. */
type NewEndpointDelivery = Pick<NewRelay, "ref" | "relay_id" | "accountRef" | "projectRef" | "event"> &
  Pick<NewRelay, "target_url" | "scheduled_for"> & { readonly endpointRef: number };

/** A new delivery of a message, which has the content. */
type NewMessageDelivery = NewEndpointDelivery & {
  readonly created_at: number;
  readonly schedule_id: string | null;
  readonly messageRef: number;
};

/** A new delivery of an inbound event, which has the content. */
type NewEventDelivery = NewEndpointDelivery & InboundEvent;

/** The outcome of an attempt. */
type RelayResult = Pick<RelayItem, "status" | "attempts" | "response_status" | "error"> & {
  /** Null unless failed. */
  readonly failure: RelayFailure | null;
  /** Of a delivery that is being retried. */
  readonly next_attempt_at?: number | null;
};

/** Request and response of an attempt. */
export type Exchange = {
  /** JSON, without secrets. */
  readonly request_headers: string | null;
  /** JSON; null without a response. */
  readonly response_headers: string | null;
  /** Start of the body. */
  readonly response_body: Uint8Array | null;
  readonly remote_address: string | null;
};

/** A stored attempt. */
export type AttemptRow = Omit<RelayAttempt, keyof Exchange | "response_body_base64"> & Exchange;

/** Filters of a list; null for those not set. */
export type Filters = {
  readonly kind: number | null;
  /** A kind that is omitted. */
  readonly notKind: number | null;
  readonly event: string | null;
  readonly since: number | null;
  readonly until: number | null;
  readonly failure: number | null;
  /** HTTP status of the last response, from and through; both are null or neither. */
  readonly statusFrom: number | null;
  readonly statusThrough: number | null;
  readonly target: string | null;
  readonly schedule: string | null;
  readonly endpointRef: number | null;
  readonly messageRef: number | null;
};

/** A delivery for statistics. `matches`: 1 when the filters match. */
export type RelaySummary = Referenced & {
  readonly kind: number;
  readonly created_at: number;
  readonly matches: 0 | 1;
};

/** Columns with another type than in the API. */
type Stored<Item> = Omit<
  Item,
  "relay_id" | "kind" | "status" | "monitor_id" | "waiting_for" | "callback_of"
> & {
  readonly callback_of: Uint8Array | null;
  readonly waiting_for: Uint8Array | null;
  readonly relay_id: Uint8Array;
  readonly kind: number;
  readonly monitor_id: Uint8Array | null;
};
type StoredRow = Stored<RelayItem> & Omit<RelayRow, "item"> & { readonly status: number };
type Outcome = Omit<RelayResult, "status" | "failure" | "next_attempt_at"> & {
  readonly ref: number;
  readonly status: number;
  readonly failure: number | null;
};

type Referenced = { readonly ref: number };

const ENDPOINT_ID =
  "(SELECT endpoint_id FROM relay_endpoints AS e WHERE e.ref = endpoint_ref) AS endpoint_id";
const COLUMNS = `ref, project_ref AS projectRef, relay_id, kind, event, monitor_id, schedule_id,
   ${ENDPOINT_ID},
   CASE WHEN message_ref IS NOT NULL THEN (SELECT message_id FROM relay_messages AS m WHERE m.ref = message_ref) END AS message_id,
   CASE WHEN endpoint_ref IS NOT NULL AND status = 1 THEN (SELECT h.relay_id FROM relay_order AS o
     JOIN relay_order AS head ON head.endpoint_ref = o.endpoint_ref AND head.order_key = o.order_key AND head.state = 3
     JOIN relays AS h ON h.ref = head.relay_ref WHERE o.relay_ref = relays.ref AND o.state = 2) END AS waiting_for,
   CASE WHEN kind = 4 THEN (SELECT callback_of FROM relay_callbacks AS c WHERE c.relay_ref = relays.ref) END AS callback_of,
   bucket_id, event_id, target_url, method, status, attempts, response_status, error, scheduled_for, next_attempt_at, finished_at, created_at`;
const TERMS = `account_ref AS accountRef, endpoint_ref AS endpointRef, message_ref AS messageRef, headers, retry_schedule, timeout_ms, destination, attempts_before, failure,
   kind = 1 AND EXISTS (SELECT 1 FROM relay_callbacks AS c WHERE c.relay_ref = relays.ref) AS hasCallback,
   CASE WHEN kind = 3 THEN (SELECT template FROM relay_delivery_templates AS t WHERE t.relay_ref = relays.ref) END AS template`;
const CONTENT = `${TERMS}, body, body_bytes`;
/** Bytes of the body that stands in a delivery's row, which every change of its status writes again. Reads no body. */
export const BODY_LENGTH = "coalesce(octet_length(body), octet_length(body_bytes), 0)";
/** The condition of {@link Filters}. */
export const MATCHES = `($kind IS NULL OR kind = $kind) AND ($event IS NULL OR event = $event)
  AND ($since IS NULL OR created_at >= $since) AND ($until IS NULL OR created_at < $until)
  AND ($notKind IS NULL OR kind <> $notKind) AND ($target IS NULL OR target_url = $target)
  AND ($statusFrom IS NULL OR response_status BETWEEN $statusFrom AND $statusThrough)
  AND ($failure IS NULL OR failure = $failure) AND ($schedule IS NULL OR schedule_id = $schedule)
  AND ($endpointRef IS NULL OR endpoint_ref = $endpointRef) AND ($messageRef IS NULL OR message_ref = $messageRef)`;
const PAGE = "project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT ?";
type Page = [projectRef: number, status: number, before: number, limit: number];

export type RelayStore = ReturnType<typeof relayStore>;

/** All SQL of deliveries. */
export function relayStore(db: Database) {
  const request = db.one<StoredRow & RelayContent, [ref: number]>(
    `SELECT ${COLUMNS}, ${CONTENT} FROM relays WHERE ref = ?`,
  );
  const delivery = db.one<StoredRow & RelayTerms, [ref: number]>(
    `SELECT ${COLUMNS}, ${TERMS} FROM relays WHERE ref = ?`,
  );
  const head = db.one<
    {
      readonly relay_id: Uint8Array;
      readonly projectRef: number;
      readonly isFailed: number;
      readonly bytes: number;
    },
    [ref: number]
  >(
    `SELECT relay_id, project_ref AS projectRef, status = 4 AS isFailed, ${BODY_LENGTH} AS bytes FROM relays WHERE ref = ?`,
  );
  const ofMessage = db.all<
    StoredRow & RelayContent,
    [firstRef: number, count: number, messageRef: number, limit: number]
  >(
    `SELECT ${COLUMNS}, ${CONTENT} FROM relays WHERE ref >= ?1 AND ref < ?1 + ?2 AND message_ref = ?3 ORDER BY ref DESC LIMIT ?4`,
  );
  const remove = db.change<[ref: number]>("DELETE FROM relays WHERE ref = ?");
  const { removeAttempts, ...attempts } = attemptStore(db);
  const { removeCallbacks, ...callbacks } = callbackStore(db);
  const removeTemplate = db.change<[ref: number]>("DELETE FROM relay_delivery_templates WHERE relay_ref = ?");
  const references = new References(db, "relays", "relay_highest_removed");
  const highestPending = db.number("SELECT max(last_ref) AS n FROM relay_fan_outs");
  return {
    ...attempts,
    ...insertStore(db),
    ...listStore(db),
    ...eventStore(db),
    ...deduplicationStore(db),
    ...callbacks,
    /** The largest reference used so far, including deliveries that are deleted or not stored yet; 0 when there is none. */
    highestRef: () => Math.max(references.highest(), highestPending()),

    request(ref: number): RelayRequest | null {
      const row = request(ref);
      return row && requestOf(row);
    },
    /** The same without its body: many are read in one step. */
    delivery(ref: number): RelayDelivery | null {
      const row = delivery(ref);
      return row && deliveryOf(row);
    },
    /** Stores the template that makes the body of a delivery. */
    setTemplate: db.change<[ref: number, template: string]>(
      "INSERT INTO relay_delivery_templates (relay_ref, template) VALUES (?, ?)",
    ),
    /** The id of a delivery; null without one. Reads no body, unlike {@link request}. */
    head(ref: number): { relay_id: string; projectRef: number; isFailed: boolean; bytes: number } | null {
      const row = head(ref);
      return row && { ...row, relay_id: bytesToUuid(row.relay_id), isFailed: row.isFailed === 1 };
    },
    /** The first `count` deliveries of a message, newest first, at most `limit`. */
    ofMessage: (messageRef: number, firstRef: number, count: number, limit: number): RelayRequest[] =>
      ofMessage(firstRef, count, messageRef, limit).map(requestOf),
    /** Finished deliveries, oldest first. */
    finishedBefore: db.all<Referenced, [time: number, limit: number]>(
      "SELECT ref FROM relays WHERE finished_at < ? ORDER BY finished_at LIMIT ?",
    ),
    someOfProject: db.all<Referenced, [projectRef: number, limit: number]>(
      "SELECT ref FROM relays WHERE project_ref = ? LIMIT ?",
    ),
    /**
     * Deletes deliveries. Their references are not reused: the job of a cancelled delivery may still be pending.
     * @returns the number of deleted deliveries.
     */
    remove(tx: Tx, relays: readonly Referenced[]): number {
      for (const { ref } of relays) {
        removeAttempts(tx, ref);
        removeCallbacks(tx, ref);
        removeTemplate(tx, ref);
        remove(tx, ref);
      }
      if (relays.length > 0) references.removed(tx, Math.max(...relays.map(({ ref }) => ref)));
      return relays.length;
    },
    /** The number of a project's unfinished deliveries, counted up to `countedMax`. */
    waiting: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE project_ref = ? AND status IN (1, 2) LIMIT ?)",
    ),
  };
}

type PlainRelay = [
  ref: number,
  relayId: Uint8Array,
  accountRef: number,
  projectRef: number,
  kind: number,
  url: string,
  method: string,
  body: string | null,
  scheduledFor: number,
  createdAt: number,
];

/** Statements that create deliveries. */
function insertStore(db: Database) {
  // Each bound value takes a quarter of a microsecond: null ones are omitted.
  const insert = db.change<PlainRelay>(
    "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, target_url, method, body, attempts, scheduled_for, created_at) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, 0, ?, ?)",
  );
  const insertWhole = db.change<
    [...PlainRelay, event: string | null, monitorId: Uint8Array | null, headers: Uint8Array | null]
  >(
    "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, target_url, method, body, attempts, scheduled_for, created_at, event, monitor_id, headers) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, 0, ?, ?, ?, ?, ?)",
  );
  const insertOfMessage = db.change<
    [
      ref: number,
      relayId: Uint8Array,
      accountRef: number,
      projectRef: number,
      event: string | null,
      url: string,
      scheduledFor: number,
      createdAt: number,
      endpointRef: number,
      messageRef: number,
      scheduleId: string | null,
    ]
  >(
    `INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, target_url, method, attempts, scheduled_for, created_at,
     endpoint_ref, message_ref, schedule_id) VALUES (?, ?, ?, ?, 3, 1, ?, ?, 'POST', 0, ?, ?, ?, ?, ?)`,
  );
  const insertOfEvent = db.change<
    [row: Omit<NewEventDelivery, "relay_id"> & { readonly relay_id: Uint8Array; readonly created_at: number }]
  >(
    `INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, target_url, method, attempts, scheduled_for, created_at,
     endpoint_ref, bucket_id, event_id) VALUES ($ref, $relay_id, $accountRef, $projectRef, 3, 1, $event, $target_url, 'POST', 0, $scheduled_for,
     $created_at, $endpointRef, $bucket_id, $event_id)`,
  );
  const setExtras = db.change<[extras: RelayExtras & Referenced]>(
    "UPDATE relays SET body_bytes = $body_bytes, retry_schedule = $retry_schedule, timeout_ms = $timeout_ms, schedule_id = $schedule_id, destination = $destination WHERE ref = $ref",
  );
  return {
    insert(tx: Tx, relay: NewRelay, extras: RelayExtras | null = null): void {
      const { event, monitor_id, headers } = relay;
      const plain = [
        relay.ref,
        uuidToBytes(relay.relay_id),
        relay.accountRef,
        relay.projectRef,
        kindNumber(relay.kind),
        relay.target_url,
        relay.method,
        relay.body,
        relay.scheduled_for,
        tx.now,
      ] as const;
      if (event === null && monitor_id === null && headers === null) insert(tx, ...plain);
      else insertWhole(tx, ...plain, event, monitor_id === null ? null : uuidToBytes(monitor_id), headers);
      if (extras !== null) setExtras(tx, { ...extras, ref: relay.ref });
    },
    insertOfEvent(tx: Tx, delivery: NewEventDelivery): void {
      insertOfEvent(tx, { ...delivery, relay_id: uuidToBytes(delivery.relay_id), created_at: tx.now });
    },
    /** Positional parameters: a message has up to a thousand deliveries. */
    insertOfMessage(tx: Tx, delivery: NewMessageDelivery): void {
      insertOfMessage(
        tx,
        delivery.ref,
        uuidToBytes(delivery.relay_id),
        delivery.accountRef,
        delivery.projectRef,
        delivery.event,
        delivery.target_url,
        delivery.scheduled_for,
        delivery.created_at,
        delivery.endpointRef,
        delivery.messageRef,
        delivery.schedule_id,
      );
    },
  };
}

/** Statements of the deliveries of inbound events. */
function eventStore(db: Database) {
  const ofEvent = db.all<
    Omit<EventDelivery, "relay_id" | "status"> & { readonly relay_id: Uint8Array; readonly status: number },
    [eventId: string]
  >(
    `SELECT relay_id, ${ENDPOINT_ID}, status, attempts, response_status, error, finished_at FROM relays WHERE event_id = ? ORDER BY ref`,
  );
  return {
    /** The stored deliveries of an event, oldest first. */
    ofEvent: (eventId: string): EventDelivery[] =>
      ofEvent(eventId).map(({ relay_id, endpoint_id, status, ...row }) => ({
        relay_id: bytesToUuid(relay_id),
        endpoint_id,
        status: RELAY_STATUSES[status - 1] ?? "scheduled",
        ...row,
      })),
    /** The last attempts to deliver an event, newest first. */
    attemptsOfEvent: db.all<EventDeliveryAttempt, [eventId: string, limit: number]>(
      `SELECT ${ENDPOINT_ID}, a.started_at, a.duration_ms, a.response_status, a.error, a.response_body
       FROM relays JOIN relay_attempts AS a ON a.relay_ref = ref WHERE event_id = ? ORDER BY a.started_at DESC, ref DESC LIMIT ?`,
    ),
  };
}

/** URLs that the outcome of a delivery is sent to. */
export type CallbackUrls = Readonly<Record<"callback_url" | "failure_callback_url", string | null>>;

/** Statements of callbacks. */
function callbackStore(db: Database) {
  const insert = db.change<
    [relayRef: number, url: string | null, failureUrl: string | null, callbackOf: Uint8Array | null]
  >(
    "INSERT INTO relay_callbacks (relay_ref, callback_url, failure_callback_url, callback_of) VALUES (?, ?, ?, ?)",
  );
  return {
    /** The URLs that the outcome of a delivery is sent to; null without any. */
    callbacksOf: db.one<CallbackUrls, [relayRef: number]>(
      "SELECT callback_url, failure_callback_url FROM relay_callbacks WHERE relay_ref = ?",
    ),
    setCallbacks: (tx: Tx, ref: number, { callback_url, failure_callback_url }: CallbackUrls): void =>
      void insert(tx, ref, callback_url, failure_callback_url, null),
    setCallbackOf: (tx: Tx, ref: number, relayId: string): void =>
      void insert(tx, ref, null, null, uuidToBytes(relayId)),
    removeCallbacks: db.change<[relayRef: number]>("DELETE FROM relay_callbacks WHERE relay_ref = ?"),
  };
}

/** Statements of deduplication ids. */
function deduplicationStore(db: Database) {
  return {
    /** The delivery created with an id after a time; 0 when there is none. */
    deduplicated: db.number<[projectRef: number, id: string, after: number]>(
      "SELECT relay_ref AS n FROM relay_deduplication WHERE project_ref = ? AND id = ? AND created_at > ?",
    ),
    noteDeduplication: db.change<[projectRef: number, id: string, relayRef: number, now: number]>(
      "INSERT OR REPLACE INTO relay_deduplication (project_ref, id, relay_ref, created_at) VALUES (?, ?, ?, ?)",
    ),
    removeOldDeduplication: db.change<[before: number, limit: number]>(
      "DELETE FROM relay_deduplication WHERE (project_ref, id) IN (SELECT project_ref, id FROM relay_deduplication WHERE created_at < ? ORDER BY created_at LIMIT ?)",
    ),
    removeDeduplicationOf: db.change<[projectRef: number, limit: number]>(
      "DELETE FROM relay_deduplication WHERE (project_ref, id) IN (SELECT project_ref, id FROM relay_deduplication WHERE project_ref = ? LIMIT ?)",
    ),
  };
}

/** Statements of lists and counts. */
function listStore(db: Database) {
  const page = db.all<StoredRow, Page>(`SELECT ${COLUMNS} FROM relays WHERE ${PAGE}`);
  const notificationPage = db.all<StoredRow, Page>(
    `SELECT ${COLUMNS} FROM relays WHERE kind = 2 AND ${PAGE}`,
  );
  const matching = db.all<StoredRow, [range: Filters & ScanRange & { readonly limit: number }]>(
    `SELECT ${COLUMNS} FROM relays WHERE project_ref = $projectRef AND status = $status AND ref < $before AND ref >= $floor
     AND ${MATCHES} ORDER BY ref DESC LIMIT $limit`,
  );
  return {
    /** A project's deliveries with a status, newest first, below a reference. */
    page(onlyNotifications: boolean, projectRef: number, status: RelayStatus, before: number, limit: number) {
      const rows = onlyNotifications ? notificationPage : page;
      return rows(projectRef, statusNumber(status), before, limit).map(rowOf);
    },
    /** The reference that is `rows` deliveries of a project and status below another one; 0 when there are fewer. */
    floor: db.number<[projectRef: number, status: number, before: number, rows: number]>(
      "SELECT ref AS n FROM relays WHERE project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT 1 OFFSET ?",
    ),
    /** Matching deliveries of a project and status between two references, newest first. */
    matching: (query: Filters & ScanRange & { readonly limit: number }) => matching(query).map(rowOf),
    /** A project's deliveries with a status below a reference, newest first. */
    summaries: db.all<RelaySummary, [range: Filters & Omit<ScanRange, "floor"> & { readonly limit: number }]>(
      `SELECT ref, kind, created_at, ifnull(${MATCHES}, 0) AS matches FROM relays
       WHERE project_ref = $projectRef AND status = $status AND ref < $before ORDER BY ref DESC LIMIT $limit`,
    ),
    /** The number of a project's scheduled deliveries, counted up to `countedMax`. */
    scheduledTo: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE project_ref = ? AND status = 1 LIMIT ?)",
    ),
    /** Earliest due time of a project's oldest retried deliveries; 0 when there is none. */
    retryingSince: db.number<[projectRef: number, countedMax: number]>(
      "SELECT min(scheduled_for) AS n FROM (SELECT scheduled_for FROM relays WHERE project_ref = ? AND status = 2 ORDER BY ref LIMIT ?)",
    ),
    /**
     * Endpoints and URLs with the most failed deliveries since a time, among a project's newest failed ones, with the
     * outcome of the last one. Without the secret URLs of channels.
     */
    failingTargets: db.all<
      FailingTarget,
      [projectRef: number, scannedMax: number, since: number, rowsMax: number]
    >(
      `SELECT (SELECT endpoint_id FROM relay_endpoints AS e WHERE e.ref = endpoint_ref) AS endpoint_id,
         (SELECT name FROM relay_endpoints AS e WHERE e.ref = endpoint_ref) AS name,
         target_url, kind = 4 AS isCallback, failed, since, response_status, error
       FROM (SELECT endpoint_ref, target_url, kind, count(*) AS failed, min(finished_at) AS since, response_status, error, max(ref)
         FROM (SELECT ref, endpoint_ref, target_url, kind, finished_at, response_status, error, destination IS NULL AS isPlain
         FROM relays WHERE project_ref = ? AND status = 4 ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ? AND isPlain
         GROUP BY coalesce(endpoint_ref, target_url) ORDER BY failed DESC LIMIT ?)`,
    ),
    /** The number of the newest failed deliveries that failed since a time. */
    failedSince: db.number<[projectRef: number, countedMax: number, since: number]>(
      "SELECT count(*) AS n FROM (SELECT finished_at FROM relays WHERE project_ref = ? AND status = 4 ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ?",
    ),
  };
}

/** A target with failed deliveries. */
type FailingTarget = Pick<RelayItem, "target_url" | "response_status" | "error"> & {
  readonly endpoint_id: string | null;
  readonly name: string | null;
  /** 1 if the last one was a callback. */
  readonly isCallback: number;
  readonly failed: number;
  /** Epoch milliseconds. */
  readonly since: number;
};

/** Deliveries of a project and status from `floor` up to `before`, exclusive. */
type ScanRange = {
  readonly projectRef: number;
  readonly status: number;
  readonly floor: number;
  readonly before: number;
};

/** Statements that record attempts. */
function attemptStore(db: Database) {
  const postpone = db.change<[outcome: Outcome & { readonly next_attempt_at: number | null }]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error, next_attempt_at = $next_attempt_at WHERE ref = $ref",
  );
  const finish = db.change<[outcome: Outcome & { readonly finished_at: number }]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error, finished_at = $finished_at, headers = NULL, body = NULL, body_bytes = NULL, destination = NULL WHERE ref = $ref",
  );
  const fail = db.change<[outcome: Outcome & { readonly finished_at: number }]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error, finished_at = $finished_at, failure = $failure WHERE ref = $ref",
  );
  return {
    attempts: db.all<AttemptRow, [ref: number]>(
      `SELECT number AS attempt, started_at, duration_ms, response_status, error, request_headers, response_headers, response_body,
       remote_address FROM relay_attempts WHERE relay_ref = ? ORDER BY number`,
    ),
    recordAttempt: db.change<[attempt: AttemptRow & Referenced]>(
      `INSERT OR REPLACE INTO relay_attempts (relay_ref, number, started_at, duration_ms, response_status, error, request_headers,
       response_headers, response_body, remote_address) VALUES ($ref, $attempt, $started_at, $duration_ms, $response_status, $error,
       $request_headers, $response_headers, $response_body, $remote_address)`,
    ),
    /**
     * Records the outcome of an attempt. A finished delivery loses its content, unless it failed: then it may be
     * resent.
     * @returns whether the delivery still exists.
     */
    update(tx: Tx, ref: number, { next_attempt_at = null, ...result }: RelayResult): boolean {
      const failure = result.failure === null ? null : failureNumber(result.failure);
      const outcome = { ...result, failure, ref, status: statusNumber(result.status) };
      if (result.status === "delivering") return postpone(tx, { ...outcome, next_attempt_at }) > 0;
      const end = result.status === "failed" ? fail : finish;
      return end(tx, { ...outcome, finished_at: tx.now }) > 0;
    },
    /** Restarts a failed delivery. */
    restart: db.change<[now: number, ref: number]>(
      "UPDATE relays SET status = 1, attempts_before = attempts, scheduled_for = ?, finished_at = NULL, failure = NULL WHERE ref = ?",
    ),
    /** Sets the current URL of the endpoint. */
    setTarget: db.change<[url: string, ref: number]>("UPDATE relays SET target_url = ? WHERE ref = ?"),
    removeAttempts: db.change<[ref: number]>("DELETE FROM relay_attempts WHERE relay_ref = ?"),
  };
}

/** The stored number of a failure. */
export function failureNumber(failure: RelayFailure): number {
  return RELAY_FAILURES.indexOf(failure) + 1;
}

/** The stored number of a kind. */
export function kindNumber(kind: RelayItem["kind"]): number {
  return RELAY_KINDS.indexOf(kind) + 1;
}

/** The stored number of a status. */
export function statusNumber(status: RelayStatus): number {
  return RELAY_STATUSES.indexOf(status) + 1;
}

function requestOf({ body, body_bytes, ...row }: StoredRow & RelayContent): RelayRequest {
  return { ...deliveryOf(row), body, body_bytes };
}

function deliveryOf(row: StoredRow & RelayTerms): RelayDelivery {
  const { accountRef, endpointRef, messageRef, headers, retry_schedule, timeout_ms, destination, ...rest } =
    row;
  const { attempts_before, failure, template, hasCallback, ...stored } = rest;
  const sent = { headers, retry_schedule, timeout_ms, destination };
  const of = { accountRef, endpointRef, messageRef };
  const content = { ...sent, ...of, attempts_before, failure, template, hasCallback: hasCallback === 1 };
  return { ...rowOf(stored), ...content };
}

function rowOf({ ref, projectRef, ...stored }: StoredRow): RelayRow {
  const kind = RELAY_KINDS[stored.kind - 1];
  const status = RELAY_STATUSES[stored.status - 1];
  if (kind === undefined || status === undefined)
    throw new Error(`relay ${ref} has an unknown kind or status`);
  const relay_id = bytesToUuid(stored.relay_id);
  const monitor_id = stored.monitor_id === null ? null : bytesToUuid(stored.monitor_id);
  const waiting_for = stored.waiting_for === null ? null : bytesToUuid(stored.waiting_for);
  const callback_of = stored.callback_of === null ? null : bytesToUuid(stored.callback_of);
  const ids = { relay_id, monitor_id, waiting_for, callback_of };
  return { ref, projectRef, item: { ...stored, ...ids, kind, status } };
}
