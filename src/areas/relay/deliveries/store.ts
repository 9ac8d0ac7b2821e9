import { bytesToUuid, uuidToBytes } from "../../../kernel/data/uuid.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import { References } from "../../../kernel/storage/references.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import {
  RELAY_FAILURES,
  RELAY_KINDS,
  RELAY_STATUSES,
  type RelayAttempt,
  type RelayFailure,
  type RelayItem,
  type RelayStatus,
} from "./schema.ts";

/** A delivery without its content. */
export interface RelayRow {
  readonly ref: number;
  readonly projectRef: number;
  /** The stored status: it does not include a first attempt in flight. */
  readonly item: RelayItem;
}

/** A delivery with the content that its attempts send. */
export interface RelayRequest extends RelayRow {
  readonly accountRef: number;
  /** Set for a message's delivery. */
  readonly endpointRef: number | null;
  readonly messageRef: number | null;
  /** Sealed. */
  readonly headers: Uint8Array | null;
  readonly body: string | null;
  /** Body that is not JSON; replaces `body`. */
  readonly body_bytes: Uint8Array | null;
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
}
type RelayContent = Omit<RelayRequest, keyof RelayRow>;

/** Properties that few deliveries have. */
export type RelayExtras = Pick<RelayRequest, "body_bytes" | "retry_schedule" | "timeout_ms" | "destination"> &
  Pick<RelayItem, "schedule_id">;

export type NewRelay = Pick<RelayRequest, "ref" | "projectRef" | "accountRef" | "headers" | "body"> &
  Pick<RelayItem, "relay_id" | "kind" | "event" | "monitor_id" | "target_url" | "method" | "scheduled_for">;

/** A new delivery of a message, which has the content. */
type NewMessageDelivery = Pick<NewRelay, "ref" | "relay_id" | "accountRef" | "projectRef" | "event"> &
  Pick<NewRelay, "target_url" | "scheduled_for"> & {
    readonly created_at: number;
    readonly schedule_id: string | null;
    readonly endpointRef: number;
    readonly messageRef: number;
  };

/** The outcome of an attempt. */
type RelayResult = Pick<RelayItem, "status" | "attempts" | "response_status" | "error"> & {
  /** Null unless failed. */
  readonly failure: RelayFailure | null;
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
  readonly event: string | null;
  readonly since: number | null;
  readonly until: number | null;
  readonly failure: number | null;
  readonly schedule: string | null;
  readonly endpointRef: number | null;
  readonly messageRef: number | null;
};

/** Columns with another type than in the API. */
type Stored<Item> = Omit<Item, "relay_id" | "kind" | "status" | "monitor_id"> & {
  readonly relay_id: Uint8Array;
  readonly kind: number;
  readonly monitor_id: Uint8Array | null;
};
type StoredRow = Stored<RelayItem> & Omit<RelayRow, "item"> & { readonly status: number };
type Outcome = Omit<RelayResult, "status" | "failure"> & {
  readonly ref: number;
  readonly status: number;
  readonly failure: number | null;
};

type Referenced = { readonly ref: number };

const COLUMNS = `ref, project_ref AS projectRef, relay_id, kind, event, monitor_id, schedule_id,
   CASE WHEN endpoint_ref IS NOT NULL THEN (SELECT endpoint_id FROM relay_endpoints AS e WHERE e.ref = endpoint_ref) END AS endpoint_id,
   CASE WHEN message_ref IS NOT NULL THEN (SELECT message_id FROM relay_messages AS m WHERE m.ref = message_ref) END AS message_id,
   target_url, method, status, attempts, response_status, error, scheduled_for, finished_at, created_at`;
const CONTENT =
  "account_ref AS accountRef, endpoint_ref AS endpointRef, message_ref AS messageRef, headers, body, body_bytes, retry_schedule, timeout_ms, destination, attempts_before, failure";
const MATCHES = `($kind IS NULL OR kind = $kind) AND ($event IS NULL OR event = $event)
  AND ($since IS NULL OR created_at >= $since) AND ($until IS NULL OR created_at < $until)
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
  const remove = db.change<[ref: number]>("DELETE FROM relays WHERE ref = ?");
  const { removeAttempts, ...attempts } = attemptStore(db);
  const references = new References(db, "relays", "relay_highest_removed");
  const highestPending = db.number("SELECT max(last_ref) AS n FROM relay_fan_outs");
  return {
    ...attempts,
    ...insertStore(db),
    ...listStore(db),
    /** The largest reference used so far, including deliveries that are deleted or not stored yet; 0 when there is none. */
    highestRef: () => Math.max(references.highest(), highestPending()),

    request(ref: number): RelayRequest | null {
      const row = request(ref);
      if (row === null) return null;
      const {
        accountRef,
        endpointRef,
        messageRef,
        headers,
        body,
        body_bytes,
        retry_schedule,
        timeout_ms,
        destination,
        ...rest
      } = row;
      const { attempts_before, failure, ...stored } = rest;
      const sent = { headers, body, body_bytes, retry_schedule, timeout_ms, destination };
      const of = { accountRef, endpointRef, messageRef };
      return { ...rowOf(stored), ...sent, ...of, attempts_before, failure };
    },
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
        remove(tx, ref);
      }
      if (relays.length > 0) references.removed(tx, Math.max(...relays.map(({ ref }) => ref)));
      return relays.length;
    },
    /** The number of a project's unfinished deliveries. */
    waiting: db.number<[projectRef: number]>(
      "SELECT count(*) AS n FROM relays WHERE project_ref = ? AND status IN (1, 2)",
    ),
  };
}

/** Statements that create deliveries. */
function insertStore(db: Database) {
  const insert = db.change<[row: Stored<NewRelay> & { readonly created_at: number }]>(
    "INSERT INTO relays (ref, relay_id, account_ref, project_ref, kind, status, event, monitor_id, target_url, method, headers, body, attempts, scheduled_for, created_at) VALUES ($ref, $relay_id, $accountRef, $projectRef, $kind, 1, $event, $monitor_id, $target_url, $method, $headers, $body, 0, $scheduled_for, $created_at)",
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
  const setExtras = db.change<[extras: RelayExtras & Referenced]>(
    "UPDATE relays SET body_bytes = $body_bytes, retry_schedule = $retry_schedule, timeout_ms = $timeout_ms, schedule_id = $schedule_id, destination = $destination WHERE ref = $ref",
  );
  return {
    insert(tx: Tx, relay: NewRelay, extras: RelayExtras | null = null): void {
      insert(tx, {
        ...relay,
        relay_id: uuidToBytes(relay.relay_id),
        kind: kindNumber(relay.kind),
        monitor_id: relay.monitor_id === null ? null : uuidToBytes(relay.monitor_id),
        created_at: tx.now,
      });
      if (extras !== null) setExtras(tx, { ...extras, ref: relay.ref });
    },
    /** Positional parameters: a message has up to a thousand deliveries. */
    insertOfMessage(tx: Tx, one: NewMessageDelivery): void {
      insertOfMessage(
        tx,
        one.ref,
        uuidToBytes(one.relay_id),
        one.accountRef,
        one.projectRef,
        one.event,
        one.target_url,
        one.scheduled_for,
        one.created_at,
        one.endpointRef,
        one.messageRef,
        one.schedule_id,
      );
    },
  };
}

/** Statements of lists and counts. */
function listStore(db: Database) {
  const page = db.all<StoredRow, Page>(`SELECT ${COLUMNS} FROM relays WHERE ${PAGE}`);
  const pulsePage = db.all<StoredRow, Page>(`SELECT ${COLUMNS} FROM relays WHERE kind = 2 AND ${PAGE}`);
  const matching = db.all<StoredRow, [range: Filters & ScanRange & { readonly limit: number }]>(
    `SELECT ${COLUMNS} FROM relays WHERE project_ref = $projectRef AND status = $status AND ref < $before AND ref >= $floor
     AND ${MATCHES} ORDER BY ref DESC LIMIT $limit`,
  );
  return {
    /** A project's deliveries with a status, newest first, below a reference. */
    page(onlyPulse: boolean, projectRef: number, status: RelayStatus, before: number, limit: number) {
      const rows = onlyPulse ? pulsePage : page;
      return rows(projectRef, statusNumber(status), before, limit).map(rowOf);
    },
    /** The reference that is `rows` deliveries of a project and status below another one; 0 when there are fewer. */
    floor: db.number<[projectRef: number, status: number, before: number, rows: number]>(
      "SELECT ref AS n FROM relays WHERE project_ref = ? AND status = ? AND ref < ? ORDER BY ref DESC LIMIT 1 OFFSET ?",
    ),
    /** Matching deliveries of a project and status between two references, newest first. */
    matching: (query: Filters & ScanRange & { readonly limit: number }) => matching(query).map(rowOf),
    /** The number of a project's scheduled deliveries, counted up to `countedMax`. */
    scheduledTo: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM relays WHERE project_ref = ? AND status = 1 LIMIT ?)",
    ),
    /** Earliest due time of a project's oldest retried deliveries; 0 when there is none. */
    retryingSince: db.number<[projectRef: number, countedMax: number]>(
      "SELECT min(scheduled_for) AS n FROM (SELECT scheduled_for FROM relays WHERE project_ref = ? AND status = 2 ORDER BY ref LIMIT ?)",
    ),
    /** The number of the newest failed deliveries that failed since a time. */
    failedSince: db.number<[projectRef: number, countedMax: number, since: number]>(
      "SELECT count(*) AS n FROM (SELECT finished_at FROM relays WHERE project_ref = ? AND status = 4 ORDER BY ref DESC LIMIT ?) WHERE finished_at >= ?",
    ),
  };
}

/** Deliveries of a project and status from `floor` up to `before`, exclusive. */
type ScanRange = {
  readonly projectRef: number;
  readonly status: number;
  readonly floor: number;
  readonly before: number;
};

/** Statements that record attempts. */
function attemptStore(db: Database) {
  const postpone = db.change<[outcome: Outcome]>(
    "UPDATE relays SET status = $status, attempts = $attempts, response_status = $response_status, error = $error WHERE ref = $ref",
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
    recordAttempt: db.change<[made: AttemptRow & Referenced]>(
      `INSERT OR REPLACE INTO relay_attempts (relay_ref, number, started_at, duration_ms, response_status, error, request_headers,
       response_headers, response_body, remote_address) VALUES ($ref, $attempt, $started_at, $duration_ms, $response_status, $error,
       $request_headers, $response_headers, $response_body, $remote_address)`,
    ),
    /**
     * Records the outcome of an attempt. A finished delivery loses its content, unless it failed: then it may be
     * resent.
     * @returns whether the delivery still exists.
     */
    update(tx: Tx, ref: number, result: RelayResult): boolean {
      const failure = result.failure === null ? null : failureNumber(result.failure);
      const outcome = { ...result, failure, ref, status: statusNumber(result.status) };
      if (result.status === "delivering") return postpone(tx, outcome) > 0;
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

function rowOf({ ref, projectRef, ...stored }: StoredRow): RelayRow {
  const kind = RELAY_KINDS[stored.kind - 1];
  const status = RELAY_STATUSES[stored.status - 1];
  if (kind === undefined || status === undefined)
    throw new Error(`relay ${ref} has an unknown kind or status`);
  const relay_id = bytesToUuid(stored.relay_id);
  const monitor_id = stored.monitor_id === null ? null : bytesToUuid(stored.monitor_id);
  return { ref, projectRef, item: { ...stored, relay_id, kind, status, monitor_id } };
}
