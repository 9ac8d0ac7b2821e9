import type { ManagedBy } from "../../kernel/resources/managed.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { deduplicationStore } from "./deduplication-store.ts";
import {
  ATTEMPT_KINDS,
  ATTEMPTS_STORED_MAX,
  DETECTED_PROVIDERS,
  EVENT_STATUSES,
  type EventStatus,
  PROVIDERS,
  type Provider,
  VERIFICATIONS,
} from "./domain.ts";
import type { EventAttempt, EventItem } from "./schema.ts";

/** A row of `catch_buckets`. */
export interface BucketRow {
  readonly ref: number;
  readonly id: string;
  readonly account_ref: number;
  readonly project_ref: number;
  name: string | null;
  /** Empty for none: the bucket has targets, or clients fetch its events. */
  target_url: string;
  /** See {@link encodeProvider}. */
  provider: number;
  /** Sealed. */
  signing_secret: Uint8Array | null;
  /** Sealed JSON; null for defaults. */
  settings: Uint8Array | null;
  live: number;
  pull: number;
  pending: number;
  delivered: number;
  failed: number;
  /** Requests that were too large to be stored. */
  too_large: number;
  last_too_large_at: number | null;
  /** Bytes of the bodies of its events. */
  stored_bytes: number;
  readonly created_at: number;
  updated_at: number;
  deleted_at: number | null;
  readonly managed_by: ManagedBy;
}

type Terms = Pick<BucketRow, "ref" | "name" | "target_url" | "signing_secret" | "settings" | "updated_at"> & {
  live: boolean;
  pull: boolean;
  retention_hours: number | null;
};

/** A new bucket: empty. */
type NewBucket = Omit<
  BucketRow,
  | "live"
  | "pull"
  | EventStatus
  | "too_large"
  | "last_too_large_at"
  | "stored_bytes"
  | "updated_at"
  | "deleted_at"
> &
  Pick<Terms, "live" | "pull" | "retention_hours">;

/** A bucket with the age of its oldest event, for the clean-up. */
export type OldestEvent = Pick<BucketRow, "ref" | "id" | "account_ref"> & {
  readonly events: number;
  readonly oldest_at: number | null;
  readonly retention_hours: number | null;
};

export type BucketStore = ReturnType<typeof bucketStore>;

/** All SQL of buckets. References also identify buckets that are being removed. */
export function bucketStore(db: Database) {
  const remove = db.change<[ref: number]>("DELETE FROM catch_buckets WHERE ref = ?");
  const removeTargets = db.change<[ref: number]>("DELETE FROM catch_targets WHERE bucket_ref = ?");
  const addTarget = db.change<[endpointId: string, ref: number]>(
    "INSERT INTO catch_targets (endpoint_id, bucket_ref) VALUES (?, ?)",
  );
  return {
    highestRef: db.number("SELECT max(ref) AS n FROM catch_buckets"),
    find: db.one<BucketRow, [id: string]>(
      "SELECT ref, id, account_ref, project_ref, name, target_url, provider, signing_secret, settings, live, pull, pending, delivered, failed, too_large, last_too_large_at, stored_bytes, created_at, updated_at, deleted_at, managed_by FROM catch_buckets WHERE id = ?",
    ),
    idOf: db.one<Pick<BucketRow, "id">, [ref: number]>("SELECT id FROM catch_buckets WHERE ref = ?"),
    /** A project's bucket with a name. */
    named: db.one<Pick<BucketRow, "id">, [projectRef: number, name: string]>(
      "SELECT id FROM catch_buckets WHERE project_ref = ? AND name = ? AND deleted_at IS NULL",
    ),
    /** Newest first. */
    ofProject: db.all<Pick<BucketRow, "id">, [projectRef: number]>(
      "SELECT id FROM catch_buckets WHERE project_ref = ? AND deleted_at IS NULL ORDER BY ref DESC",
    ),
    /** Buckets of a project, counted up to `countedMax`. */
    countOfProject: db.number<[projectRef: number, countedMax: number]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM catch_buckets WHERE project_ref = ? AND deleted_at IS NULL LIMIT ?)",
    ),
    /** Buckets of all projects of an account: at most its tier's limit. */
    countOfAccount: db.number<[accountRef: number]>(
      "SELECT count(*) AS n FROM catch_buckets WHERE account_ref = ? AND deleted_at IS NULL",
    ),
    anyOfProject: db.one<Pick<BucketRow, "ref">, [projectRef: number]>(
      "SELECT ref FROM catch_buckets WHERE project_ref = ? LIMIT 1",
    ),
    /** Live buckets with pending events. */
    toForward: db.all<Pick<BucketRow, "ref">, [afterRef: number, limit: number]>(
      "SELECT ref FROM catch_buckets WHERE ref > ? AND live = 1 AND pull = 0 AND pending > 0 AND deleted_at IS NULL ORDER BY ref LIMIT ?",
    ),
    oldestEvents: db.all<OldestEvent, [afterRef: number, limit: number]>(
      `SELECT ref, id, account_ref, retention_hours, pending + delivered + failed AS events,
         (SELECT received_at FROM catch_events WHERE bucket_ref = ref ORDER BY sequence LIMIT 1) AS oldest_at
       FROM catch_buckets WHERE ref > ? AND deleted_at IS NULL ORDER BY ref LIMIT ?`,
    ),
    insert: db.change<[NewBucket]>(
      `INSERT INTO catch_buckets (ref, id, account_ref, project_ref, name, target_url, provider, signing_secret, settings,
         retention_hours, live, pull, pending, delivered, failed, created_at, updated_at, managed_by)
       VALUES ($ref, $id, $account_ref, $project_ref, $name, $target_url, $provider, $signing_secret, $settings, $retention_hours,
         $live, $pull, 0, 0, 0, $created_at, $created_at, $managed_by)`,
    ),
    setTerms: db.change<[Terms]>(
      `UPDATE catch_buckets SET name = $name, target_url = $target_url, signing_secret = $signing_secret,
         settings = $settings, retention_hours = $retention_hours, live = $live, pull = $pull, updated_at = $updated_at WHERE ref = $ref`,
    ),
    setCounts: db.change<
      [pending: number, delivered: number, failed: number, storedBytes: number, ref: number]
    >("UPDATE catch_buckets SET pending = ?, delivered = ?, failed = ?, stored_bytes = ? WHERE ref = ?"),
    /** Bytes of the bodies that the buckets of an account store. */
    storedBytesOf: db.number<[accountRef: number]>(
      "SELECT sum(stored_bytes) AS n FROM catch_buckets WHERE account_ref = ? AND deleted_at IS NULL",
    ),
    setTooLarge: db.change<[tooLarge: number, lastAt: number | null, ref: number]>(
      "UPDATE catch_buckets SET too_large = ?, last_too_large_at = ? WHERE ref = ?",
    ),
    /** Buckets that deliver to an endpoint, oldest first: enough for a message. */
    bucketsWithTarget: db.all<Pick<BucketRow, "id">, [endpointId: string]>(
      `SELECT id FROM catch_targets JOIN catch_buckets ON ref = bucket_ref WHERE endpoint_id = ? AND deleted_at IS NULL
       ORDER BY bucket_ref LIMIT 10`,
    ),
    /** Replaces the endpoints that a bucket delivers to. */
    setTargets(tx: Tx, ref: number, endpointIds: readonly string[]): void {
      removeTargets(tx, ref);
      for (const id of endpointIds) addTarget(tx, id, ref);
    },
    setDeleted: db.change<[at: number, ref: number]>("UPDATE catch_buckets SET deleted_at = ? WHERE ref = ?"),
    delete(tx: Tx, ref: number): void {
      removeTargets(tx, ref);
      remove(tx, ref);
    },
  };
}

/** `retry_at` of a pending event that endpoints receive, while no time of a retry is known. */
export const QUEUED = 0;

/** A row of `catch_events`, where status, provider and verification are numbers. */
export interface EventRow
  extends Omit<EventItem, "id" | "bucket_id" | "received_at" | "delivered_at" | "next_attempt_at"> {
  readonly provider_event_id: string | null;
  /** Repeats that were not stored. */
  readonly duplicates: number;
  readonly bucket_ref: number;
  readonly sequence: number;
  /** Bytes of the body. */
  readonly payload_bytes: number;
  readonly received_at: number;
  readonly delivered_at: number | null;
  /** Set while the event has a job for its retry, or deliveries to endpoints: other pending events are sent in order. */
  readonly retry_at: number | null;
}

type StoredEvent = Record<"status" | "provider" | "verification", number> &
  Omit<EventRow, "status" | "provider" | "verification">;

/** Headers and body of a request. */
export interface PayloadRow {
  /** As returned by `storedHeaders`. */
  readonly headers: string;
  /** Empty when it is stored in pieces. */
  readonly body: Uint8Array;
}

/** A body that is stored in pieces. */
export interface LargePayload {
  readonly upload: number;
  readonly body_bytes: number;
  readonly sha256: Uint8Array;
}

/** A stored request; its body is in pieces, or all of these are null. */
export type StoredPayload = PayloadRow & (LargePayload | Readonly<Record<keyof LargePayload, null>>);

/** Method, path, query and address of a request; null for usual values. */
export type WayRow = Readonly<Record<"method" | "path" | "query" | "remote_address", string | null>>;

/** A received event. */
export type NewEvent = PayloadRow & { readonly way: WayRow; readonly large: LargePayload | null } & Pick<
    EventRow,
    "provider" | "verification" | "event_type" | "provider_event_id"
  >;

/** An attempt to deliver an event. */
export type AttemptRow = Omit<EventAttempt, "at"> & { readonly at: number };

type StoredAttempt = Omit<AttemptRow, "kind"> & Record<"sequence" | "number" | "kind", number>;

/** An event that may be removed; its status is a number. */
export type RemovableRow = Pick<
  StoredEvent,
  "sequence" | "status" | "received_at" | "provider_event_id" | "payload_bytes"
>;

/** Filters of a list; null for any. */
export type EventFilter = Pick<EventRow, "provider"> & { readonly status: EventStatus | null };

type KindParams = [bucketRef: number, status: number, provider: number, sequence: number, limit: number];

const EVENT =
  "bucket_ref, sequence, provider, status, verification, received_at, attempts, response_status, error, delivered_at, retry_at, event_type, provider_event_id, duplicates, payload_bytes";
const OF_KIND = "SELECT sequence FROM catch_events WHERE bucket_ref = ? AND status = ? AND provider = ?";

/** Stored providers of events in a bucket without a provider; 0 for none. */
const DETECTED_CODES = [0, ...DETECTED_PROVIDERS.map(encodeProvider)];
const STATUS_CODES = [0, 1, 2] as const;

type PlainEvent = [
  bucketRef: number,
  sequence: number,
  status: number,
  provider: number,
  verification: number,
  receivedAt: number,
  error: string | null,
  payloadBytes: number,
];
type Way = [remoteAddress: string | null, method: string | null, path: string | null, query: string | null];
type PlainPayload = [sequence: number, headers: string, body: Uint8Array, remoteAddress: string | null];

export type EventStore = ReturnType<typeof eventStore>;

/** All SQL of events and their payloads. */
export function eventStore(db: Database) {
  // Each bound value takes a quarter of a microsecond: usual values are omitted, and null in their columns.
  const insertEvent = db.change<PlainEvent>(
    `INSERT INTO catch_events (bucket_ref, sequence, status, provider, verification, received_at, attempts, error, payload_bytes)
     VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)`,
  );
  const insertNamedEvent = db.change<
    [...PlainEvent, eventType: string | null, providerEventId: string | null]
  >(
    `INSERT INTO catch_events (bucket_ref, sequence, status, provider, verification, received_at, attempts, error, payload_bytes,
       event_type, provider_event_id)
     VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
  );
  const insertPayload = db.change<PlainPayload>(
    "INSERT INTO catch_payloads (sequence, headers, body, remote_address) VALUES (?, ?, ?, ?)",
  );
  const insertPayloadBelow = db.change<
    [...PlainPayload, method: string | null, path: string | null, query: string | null]
  >(
    "INSERT INTO catch_payloads (sequence, headers, body, remote_address, method, path, query) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const insertLargePayload = db.change<
    [sequence: number, headers: string, upload: number, bodyBytes: number, sha256: Uint8Array, ...Way]
  >(
    `INSERT INTO catch_payloads (sequence, headers, body, upload, body_bytes, sha256, remote_address, method, path, query)
     VALUES (?, ?, x'', ?, ?, ?, ?, ?, ?, ?)`,
  );
  const update = db.change<[Attempt]>(
    `UPDATE catch_events SET status = $status, attempts = $attempts, response_status = $response_status, error = $error,
       delivered_at = $delivered_at, retry_at = $retry_at WHERE bucket_ref = $bucket_ref AND sequence = $sequence`,
  );
  const deleteEvent = db.change<[bucketRef: number, sequence: number]>(
    "DELETE FROM catch_events WHERE bucket_ref = ? AND sequence = ?",
  );
  const deletePayload = db.change<[sequence: number]>("DELETE FROM catch_payloads WHERE sequence = ?");
  const deleteAttempts = db.change<[sequence: number]>("DELETE FROM catch_attempts WHERE sequence = ?");
  return {
    ...eventReads(db),
    ...kindReads(db),
    ...attemptStore(db),
    ...deduplicationStore(db),
    insert(
      tx: Tx,
      bucketRef: number,
      sequence: number,
      { status, error }: Pick<EventRow, "status" | "error">,
      event: NewEvent,
    ): void {
      const { headers, body, large, event_type, provider_event_id } = event;
      const provider = encodeProvider(event.provider);
      const verified = VERIFICATIONS.indexOf(event.verification);
      const { method, path, query, remote_address } = event.way;
      const plain = [
        bucketRef,
        sequence,
        statusCode(status),
        provider,
        verified,
        tx.now,
        error,
        large === null ? body.length : large.body_bytes,
      ] as const;
      if (large !== null) {
        const { upload, body_bytes, sha256 } = large;
        const way = [remote_address, method, path, query] as const;
        insertLargePayload(tx, sequence, headers, upload, body_bytes, sha256, ...way);
      } else if (method === null && path === null && query === null)
        insertPayload(tx, sequence, headers, body, remote_address);
      else insertPayloadBelow(tx, sequence, headers, body, remote_address, method, path, query);
      if (event_type === null && provider_event_id === null) insertEvent(tx, ...plain);
      else insertNamedEvent(tx, ...plain, event_type, provider_event_id);
    },
    /** Records an attempt, if the event still exists. */
    setAttempt(tx: Tx, row: EventRow): void {
      const { bucket_ref, sequence, attempts, response_status, error, delivered_at, retry_at } = row;
      const outcome = { attempts, response_status, error, delivered_at, retry_at };
      update(tx, { bucket_ref, sequence, status: statusCode(row.status), ...outcome });
    },
    delete(tx: Tx, bucketRef: number, sequence: number): void {
      deleteEvent(tx, bucketRef, sequence);
      deletePayload(tx, sequence);
      deleteAttempts(tx, sequence);
    },
  };
}

type Attempt = Pick<
  StoredEvent,
  | "bucket_ref"
  | "sequence"
  | "status"
  | "attempts"
  | "response_status"
  | "error"
  | "delivered_at"
  | "retry_at"
>;

function attemptStore(db: Database) {
  const last = db.number<[sequence: number]>(
    "SELECT max(number) AS n FROM catch_attempts WHERE sequence = ?",
  );
  const insert = db.change<[StoredAttempt]>(
    `INSERT INTO catch_attempts (sequence, number, kind, at, duration_ms, response_status, error, response_body)
     VALUES ($sequence, $number, $kind, $at, $duration_ms, $response_status, $error, $response_body)`,
  );
  const forget = db.change<[sequence: number, number: number]>(
    "DELETE FROM catch_attempts WHERE sequence = ? AND number = ?",
  );
  const all = db.all<StoredAttempt, [sequence: number]>(
    "SELECT sequence, number, kind, at, duration_ms, response_status, error, response_body FROM catch_attempts WHERE sequence = ? ORDER BY number",
  );
  return {
    /** The stored attempts of an event, oldest first. */
    attempts: (sequence: number): AttemptRow[] =>
      all(sequence).map(({ sequence: _, number, kind, ...row }) => ({
        ...row,
        kind: ATTEMPT_KINDS[kind] ?? "forward",
      })),
    /** Adds an attempt of an existing event, and removes the oldest beyond the limit. */
    addAttempt(tx: Tx, sequence: number, attempt: AttemptRow): void {
      const number = last(sequence) + 1;
      insert(tx, { ...attempt, sequence, number, kind: ATTEMPT_KINDS.indexOf(attempt.kind) });
      if (number > ATTEMPTS_STORED_MAX) forget(tx, sequence, number - ATTEMPTS_STORED_MAX);
    },
  };
}

function eventReads(db: Database) {
  const byKey = db.one<StoredEvent, [bucketRef: number, sequence: number]>(
    `SELECT ${EVENT} FROM catch_events WHERE bucket_ref = ? AND sequence = ?`,
  );
  const before = db.all<StoredEvent, [bucketRef: number, sequence: number, limit: number]>(
    `SELECT ${EVENT} FROM catch_events WHERE bucket_ref = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
  );
  const after = db.all<StoredEvent, [bucketRef: number, sequence: number, limit: number]>(
    `SELECT ${EVENT} FROM catch_events WHERE bucket_ref = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const beforeOfKind = db.all<Pick<EventRow, "sequence">, KindParams>(
    `${OF_KIND} AND sequence < ? ORDER BY sequence DESC LIMIT ?`,
  );
  const find = (bucketRef: number, sequence: number): EventRow | null => {
    const row = byKey(bucketRef, sequence);
    return row === null ? null : decoded(row);
  };
  return {
    /** The largest number of a stored event; 0 without events. */
    highestSequence: db.number("SELECT max(sequence) AS n FROM catch_payloads"),
    find,
    payload: db.one<StoredPayload, [sequence: number]>(
      "SELECT headers, body, upload, body_bytes, sha256 FROM catch_payloads WHERE sequence = ?",
    ),
    /** The number of the upload that is the body of an event; 0 when it is not in pieces. */
    uploadOf: db.number<[sequence: number]>("SELECT upload AS n FROM catch_payloads WHERE sequence = ?"),
    /** The method of a request (null for POST), and the start of its body; null for a large one, which takes longer to read. */
    summary: db.one<
      { readonly method: string | null; readonly start: Uint8Array | null },
      [sequence: number, bodyBytesMax: number, startBytes: number]
    >(
      "SELECT method, CASE WHEN upload IS NULL AND length(body) <= ?2 THEN substr(body, 1, ?3) END AS start FROM catch_payloads WHERE sequence = ?1",
    ),
    way: db.one<WayRow, [sequence: number]>(
      "SELECT method, path, query, remote_address FROM catch_payloads WHERE sequence = ?",
    ),
    /** A bucket's events after a number, oldest first. */
    after: (bucketRef: number, sequence: number, limit: number): EventRow[] =>
      after(bucketRef, sequence, limit).map(decoded),
    /**
     * A bucket's events before a number, newest first. It reads about as many rows as it returns, whatever the filter. A null
     * provider means those detected by headers: in a bucket with a provider, all events have that provider.
     */
    page(bucketRef: number, { provider, status }: EventFilter, sequence: number, limit: number): EventRow[] {
      if (provider === null && status === null) return before(bucketRef, sequence, limit).map(decoded);
      const statuses = status === null ? STATUS_CODES : [statusCode(status)];
      const providers = codesOf(provider);
      return statuses
        .flatMap((code) =>
          providers.flatMap((other) => beforeOfKind(bucketRef, code, other, sequence, limit)),
        )
        .sort((a, b) => b.sequence - a.sequence)
        .slice(0, limit)
        .flatMap((found) => find(bucketRef, found.sequence) ?? []);
    },
    /** The number of a bucket's newest event; 0 without events. */
    lastOf: db.number<[bucketRef: number]>(
      "SELECT max(sequence) AS n FROM catch_events WHERE bucket_ref = ?",
    ),
    /** A bucket's oldest events. */
    oldestOf: db.all<RemovableRow, [bucketRef: number, limit: number]>(
      "SELECT sequence, status, received_at, payload_bytes, provider_event_id FROM catch_events WHERE bucket_ref = ? ORDER BY sequence LIMIT ?",
    ),
  };
}

function kindReads(db: Database) {
  const afterOfKind = db.all<Pick<EventRow, "sequence">, KindParams>(
    `${OF_KIND} AND sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const countFrom = db.number<KindParams>(`SELECT count(*) AS n FROM (${OF_KIND} AND sequence >= ? LIMIT ?)`);
  return {
    /** Numbers of a bucket's pending events after a number, oldest first. `provider`: the bucket's. */
    pendingAfter(bucketRef: number, provider: Provider | null, after: number, limit: number): number[] {
      const pending = statusCode("pending");
      return codesOf(provider)
        .flatMap((code) => afterOfKind(bucketRef, pending, code, after, limit))
        .map(({ sequence }) => sequence)
        .sort((a, b) => a - b)
        .slice(0, limit);
    },
    /** The number of a bucket's failed events from a number on; those of each sender are counted up to a limit. */
    failedFrom(bucketRef: number, provider: Provider | null, sequence: number, countedMax: number): number {
      const failed = statusCode("failed");
      return codesOf(provider)
        .map((code) => countFrom(bucketRef, failed, code, sequence, countedMax))
        .reduce((sum, n) => sum + n);
    },
  };
}

/** The stored providers that events of a bucket with this provider can have. */
function codesOf(provider: Provider | null): readonly number[] {
  return provider === null ? DETECTED_CODES : [encodeProvider(provider)];
}

/** The stored number of a provider. */
export function encodeProvider(provider: Provider | null): number {
  return provider === null ? 0 : PROVIDERS.indexOf(provider) + 1;
}

/** The provider with a stored number. */
export function decodeProvider(code: number): Provider | null {
  return PROVIDERS[code - 1] ?? null;
}

/** The status with a stored number. */
export function decodeStatus(code: number): EventStatus {
  return EVENT_STATUSES[code] ?? "failed";
}

function statusCode(status: EventStatus): number {
  return EVENT_STATUSES.indexOf(status);
}

function decoded(row: StoredEvent): EventRow {
  return {
    ...row,
    status: decodeStatus(row.status),
    provider: decodeProvider(row.provider),
    verification: VERIFICATIONS[row.verification] ?? "none",
  };
}
