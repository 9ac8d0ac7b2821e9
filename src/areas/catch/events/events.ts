import { isNestedDeeper, JSON_LEVELS_MAX, parseJson } from "../../../json-text.ts";
import { contentText } from "../../../kernel/data/content.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { AcrossNetwork } from "../../../kernel/http/operations/perform.ts";
import { encodeCursor, pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import type { Attempt } from "../../../kernel/outbound/delivery.ts";
import type { PieceBody } from "../../../kernel/outbound/piece-body.ts";
import { errorOf } from "../../../kernel/outbound/retries.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull, timestampOfQuery } from "../../../kernel/time/date-time.ts";
import {
  aboutBucket,
  type BucketActor,
  type Buckets,
  hasTargets,
  type Recipient,
  type SharedDeps,
} from "../buckets/buckets.ts";
import type { Removal } from "../buckets/removal.ts";
import { ATTEMPTS_STORED_MAX, assertReplayable, isDelivered, knownProvider, mebibytesOf } from "../domain.ts";
import { type EventHeaders, readHeaders } from "../event-headers.ts";
import { eventIdOf, firstSequenceAt, sequenceOf } from "../event-ids.ts";
import { attemptOf, startOf } from "../forwarding/exchange.ts";
import { forward } from "../forwarding/forwarder.ts";
import type { Targets } from "../forwarding/targets.ts";
import { storedBody } from "../large/stored-body.ts";
import {
  type CaughtEvent,
  EVENTS_LIMIT,
  type EventAckBody,
  type EventAttempt,
  type EventExportQuery,
  type EventItem,
  type EventPage,
  type EventQuery,
  type EventReplayed,
  type EventReplayQueued,
  type EventsDeleted,
  PREVIEW_LENGTH,
} from "../schema.ts";
import { type EventRow, QUEUED, type StoredPayload } from "../store.ts";
import { exportPage } from "./export.ts";
import { EventSearch } from "./search.ts";

/** The operation that credits of a replay are charged for. */
const REPLAY = "catch.events.replay";
/** Larger bodies have no preview: a list of 100 of this size is read in some milliseconds. */
const PREVIEWED_BYTES_MAX = 65_536;
/** Most bytes of a character in UTF-8. */
const BYTES_OF_CHARACTER = 4;

/** An event with its bucket and payload. */
export interface Found {
  readonly bucket: BucketActor;
  readonly row: EventRow;
  readonly payload: StoredPayload;
}

/** A search that starts after its charge. */
interface PendingSearch {
  readonly run: (signal: AbortSignal) => Promise<EventPage>;
}

/** Lists, searches, exports, replays, acknowledges and deletes events. */
export class EventService {
  private readonly searching: EventSearch;

  constructor(
    private readonly deps: Pick<
      SharedDeps,
      | "events"
      | "outbound"
      | "accounts"
      | "clock"
      | "vault"
      | "writer"
      | "secrets"
      | "charger"
      | "endpoints"
      | "large"
    >,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
    private readonly targets: Targets,
  ) {
    this.searching = new EventSearch(deps.events, deps.large);
  }

  /**
   * A page of a bucket's events, newest first.
   * @throws ApiError `catch.bucket_not_found`, `catch.provider_unsupported`, `validation_error` for a foreign cursor.
   */
  list(projectRef: number, bucketId: string, query: EventQuery): EventPage {
    const { bucket, filter, before, from, limit } = this.rangeOf(projectRef, bucketId, query);
    const rows = this.deps.events.page(bucket.ref, filter, before, limit + 1);
    const page = pageOf(
      rows.filter(({ sequence }) => sequence >= from),
      limit,
      (row) => [row.sequence],
    );
    const events = page.items.map((row) => this.listView(bucket, row, query));
    return { events, cursor: page.cursor ?? null };
  }

  /** Start, end and filters of a list. Event numbers represent times of receipt, except after the wall clock was set back. */
  private rangeOf(projectRef: number, bucketId: string, query: EventQuery) {
    const { limit = EVENTS_LIMIT, cursor, status = null, since, until } = query;
    const provider = knownProvider(query.provider);
    const end =
      until === undefined ? Number.POSITIVE_INFINITY : firstSequenceAt(timestampOfQuery("until", until));
    const before = Math.min(pageStart(cursor), end);
    const from = since === undefined ? 0 : firstSequenceAt(timestampOfQuery("since", since));
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    return { bucket, filter: { provider: provider ?? bucket.provider, status }, before, from, limit };
  }

  /**
   * Prepares a search without an index, which runs in slices between other requests.
   * @throws ApiError as {@link list}.
   */
  search(projectRef: number, bucketId: string, query: EventQuery): PendingSearch {
    const { q, event_type, verification } = query;
    const { bucket, ...where } = this.rangeOf(projectRef, bucketId, query);
    const matches = (row: EventRow): boolean =>
      (event_type === undefined || row.event_type === event_type) &&
      (verification === undefined || row.verification === verification);
    return {
      run: async (signal) => {
        const terms = { bucketRef: bucket.ref, text: q ?? null, matches, ...where };
        const { rows, through, isPartial } = await this.searching.find(terms, signal);
        return {
          events: rows.map((row) => this.listView(bucket, row, query)),
          cursor: through === null ? null : encodeCursor([through]),
          ...(isPartial ? { partial: true } : {}),
        };
      },
    };
  }

  /** An event of a list. */
  private listView(bucket: BucketActor, row: EventRow, { details = false }: EventQuery): EventItem {
    const view = eventView(bucket, row);
    if (!details) return view;
    const summary = this.deps.events.summary(
      row.sequence,
      PREVIEWED_BYTES_MAX,
      PREVIEW_LENGTH * BYTES_OF_CHARACTER,
    );
    return { ...view, method: summary?.method ?? "POST", preview: previewOf(summary?.start ?? null) };
  }

  /** An event with its payload. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  get(projectRef: number, bucketId: string, eventId: string): CaughtEvent {
    return this.completeView(this.find(projectRef, bucketId, eventId));
  }

  /** An event with its payload; null when it was removed after its row was read. */
  ofRow(bucket: BucketActor, row: EventRow): CaughtEvent | null {
    const payload = this.deps.events.payload(row.sequence);
    return payload === null ? null : this.completeView({ bucket, row, payload });
  }

  /** The exact bytes of an event's body. @throws ApiError as {@link get} */
  raw(projectRef: number, bucketId: string, eventId: string): Uint8Array | PieceBody {
    return storedBody(this.deps.large, this.find(projectRef, bucketId, eventId).payload);
  }

  /**
   * Prepares a page of an export: see {@link exportPage}.
   * @throws ApiError `catch.bucket_not_found`, `validation_error`
   */
  export(projectRef: number, bucketId: string, query: EventExportQuery) {
    const { since, until, cursor } = query;
    const terms = {
      since: since === undefined ? 0 : timestampOfQuery("since", since),
      until: until === undefined ? Number.POSITIVE_INFINITY : timestampOfQuery("until", until),
      after: cursor === undefined ? 0 : sequenceOf(cursor),
    };
    const { after } = terms;
    if (after === null)
      throw invalidField(
        "cursor",
        "is not a cursor of this export: use the X-Next-Cursor of the previous page",
      );
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const line = (row: EventRow): string | null => {
      const event = this.ofRow(bucket, row);
      return event === null ? null : `${JSON.stringify(event)}\n`;
    };
    return {
      run: async (signal: AbortSignal) => {
        const page = await exportPage(
          this.deps.events,
          { ...terms, after, bucketRef: bucket.ref },
          line,
          signal,
        );
        return { text: page.text, cursor: page.through === null ? null : eventIdOf(page.through) };
      },
    };
  }

  /** An event with its request and attempts. */
  private completeView({ bucket, row, payload }: Found): CaughtEvent {
    const { events, vault } = this.deps;
    const body = payload.upload === null ? Buffer.from(payload.body) : null;
    const headers = readHeaders(payload.headers, vault, bucket.id);
    const { method, path, query, remote_address = null } = events.way(row.sequence) ?? {};
    return {
      ...eventView(bucket, row),
      method: method ?? "POST",
      path: path ?? "",
      query: query ?? "",
      headers,
      headers_list: Object.entries(headers),
      remote_address,
      size_bytes: row.payload_bytes,
      sha256: Buffer.from(payload.sha256 ?? Bun.CryptoHasher.hash("sha256", payload.body)).toString("hex"),
      provider_event_id: row.provider_event_id,
      duplicates: row.duplicates,
      payload: body === null ? null : readPayload(body, headers),
      payload_base64: body === null ? null : body.toString("base64"),
      ...(body === null ? { raw_url: `/v1/catch/${bucket.id}/events/${eventIdOf(row.sequence)}/raw` } : {}),
      deliveries: this.targets
        .deliveries(bucket, row.sequence)
        .map((delivery) => ({ ...delivery, finished_at: isoTimeOrNull(delivery.finished_at) })),
      attempt_log: this.attemptsOf(bucket, row),
    };
  }

  /** The last attempts, of forwards and of deliveries to endpoints, oldest first. */
  private attemptsOf({ settings }: BucketActor, { sequence }: EventRow): EventAttempt[] {
    const { events, endpoints } = this.deps;
    const forwards = events.attempts(sequence);
    if (settings.stored.targets === undefined)
      return forwards.map((attempt) => ({ ...attempt, at: isoTime(attempt.at) }));
    const ofEndpoints = endpoints
      .attempts(eventIdOf(sequence), ATTEMPTS_STORED_MAX)
      .map(({ started_at: at, response_body, ...attempt }) => ({
        at,
        kind: "forward" as const,
        ...attempt,
        response_body: response_body === null ? null : startOf(response_body),
      }));
    return [...forwards, ...ofEndpoints]
      .sort((a, b) => a.at - b.at)
      .slice(-ATTEMPTS_STORED_MAX)
      .map((attempt) => ({ ...attempt, at: isoTime(attempt.at) }));
  }

  /**
   * Replays an event. If the target accepts it, the event is delivered; otherwise its status is unchanged,
   * and the replay is free of charge. In a bucket with targets, new deliveries are queued.
   *
   * @throws ApiError, from its parts: `catch.bucket_not_found`, `catch.event_not_found`, `bucket_paused`,
   * `catch.signature_invalid`, `catch.replay_failed` without a response, and `conflict` when no endpoint accepts the event.
   */
  replay(
    projectRef: number,
    bucketId: string,
    eventId: string,
  ): AcrossNetwork<Found, Attempt | readonly Recipient[], EventReplayed | Reply<202, EventReplayQueued>> {
    return {
      claim: () => {
        const found = this.find(projectRef, bucketId, eventId);
        assertReplayable(found.bucket, found.row);
        return found;
      },
      surcharge: ({ row }) => mebibytesOf(row.payload_bytes) - 1,
      outside: async (replay) => {
        if (hasTargets(replay.bucket)) return this.matching(replay);
        const attempt = await forward(this.deps, replay.bucket, replay.row, replay.payload);
        // The error below rolls back its unit of work: the attempt is stored in a separate one.
        if (!attempt.outcome.answered)
          await this.deps.writer.submit((tx) => {
            tx.affects = replay.bucket.account_ref;
            this.storeAttempt(tx, replay, attempt);
          });
        return attempt;
      },
      settle: (tx, replay, attempt, refund) => {
        if (!("outcome" in attempt)) return reply(202, this.queueReplay(tx, replay, attempt));
        const { outcome } = attempt;
        if (!outcome.answered) {
          const { message } = outcome.failure;
          throw new ApiError("catch.replay_failed", `The target could not be reached: ${message}.`);
        }
        const accepted = isDelivered(outcome.status);
        const { bucket, row } = replay;
        const after = { bucket_id: bucket.id, response_status: outcome.status };
        tx.audit({
          summary: `Event replayed from bucket ${bucket.name ?? bucket.id}`,
          target: { type: "event", id: eventIdOf(row.sequence) },
          before: null,
          after,
        });
        this.recordAttempt(tx, replay, attempt);
        if (!accepted) refund();
        return { status: accepted ? "replayed" : "failed", response_status: outcome.status };
      },
    };
  }

  /**
   * Deletes a bucket's events received before a time, in small units of work that do not hold up other
   * requests.
   *
   * @throws ApiError, from its parts: `validation_error`, `catch.bucket_not_found`.
   */
  deleteBefore(
    projectRef: number,
    bucketId: string,
    time: string,
  ): AcrossNetwork<readonly [before: number, BucketActor], number, EventsDeleted> {
    return {
      claim: (tx) => {
        const before = timestampOfQuery("before", time, BEFORE_MESSAGE);
        const bucket = this.buckets.ofProject(projectRef, bucketId);
        const after = { deleted_before: isoTime(before) };
        tx.audit({ ...aboutBucket(bucket, "cleared of old events"), before: null, after });
        return [before, bucket];
      },
      outside: ([before, bucket]) => this.removal.removeBefore(bucket, before),
      settle: (_tx, _claim, deleted_count) => ({ deleted_count }),
    };
  }

  /** Acknowledges an event of a `pull` bucket. Repeats, and failures after a delivery, change nothing. */
  acknowledge(tx: Tx, projectRef: number, bucketId: string, eventId: string, ack: EventAckBody): EventItem {
    const { bucket, row } = this.find(projectRef, bucketId, eventId);
    if (!bucket.pull) {
      const why =
        "This bucket forwards its events. Only events of a bucket with delivery pull can be acknowledged.";
      throw new ApiError("conflict", why);
    }
    const accepted = ack.result === "delivered";
    const isFinal = row.status === "delivered" || row.verification === "invalid";
    if (isFinal || row.status === ack.result) return eventView(bucket, row);
    const { response_status = null, duration_ms = 0 } = ack;
    const error = accepted ? null : (ack.error ?? errorOf({ status: response_status, failure: null }));
    const at = tx.now - duration_ms;
    const outcome = { response_status, error };
    this.deps.events.addAttempt(tx, row.sequence, {
      at,
      kind: "pull",
      duration_ms,
      ...outcome,
      response_body: null,
    });
    const acknowledged: EventRow = {
      ...row,
      ...outcome,
      status: ack.result,
      attempts: row.attempts + 1,
      retry_at: null,
      delivered_at: accepted ? tx.now : null,
    };
    this.deps.events.setAttempt(tx, acknowledged);
    this.buckets.count(tx, bucket, row.status, ack.result);
    return eventView(bucket, acknowledged);
  }

  /** Replays an event without recording the outcome; null when the event is deleted. */
  async replayOnce(
    bucket: BucketActor,
    sequence: number,
  ): Promise<{ replay: Found; attempt: Attempt } | null> {
    const replay = this.stored(bucket, sequence);
    if (replay === null) return null;
    return { replay, attempt: await forward(this.deps, bucket, replay.row, replay.payload) };
  }

  /** The endpoints that accept an event now. */
  matching({ bucket, row, payload }: Found): Promise<Recipient[]> {
    return this.targets.matching(bucket, { event_type: row.event_type, ...payload });
  }

  /** An endpoint that never got an event, and would accept it now; null if there is none. */
  missedBy(
    bucket: BucketActor,
    endpointId: string,
    row: EventRow,
    onRead: (bytes: number) => void = () => undefined,
  ): Recipient | null {
    return this.targets.missedBy(bucket, endpointId, row, () => {
      const payload = this.deps.events.payload(row.sequence);
      onRead(payload?.body.length ?? 0);
      return payload;
    });
  }

  /** Queues the replay of an event to endpoints. Each delivery after the first is charged. @throws ApiError `conflict` */
  private queueReplay(tx: Tx, replay: Found, recipients: readonly Recipient[]): EventReplayQueued {
    const deliveries = this.replayToEndpoints(tx, replay, recipients);
    if (deliveries.length === 0)
      throw new ApiError("conflict", "No target of the bucket accepts this event: nothing was replayed.");
    const { bucket, row } = replay;
    tx.audit({
      summary: `Event replayed from bucket ${bucket.name ?? bucket.id}`,
      target: { type: "event", id: eventIdOf(row.sequence) },
      before: null,
      after: { bucket_id: bucket.id, deliveries: deliveries.length },
    });
    return { status: "queued", deliveries };
  }

  /** Charges and stores new deliveries of an event: none if it was deleted. @throws ApiError `insufficient_balance` */
  replayToEndpoints(
    tx: Tx,
    replay: Found,
    recipients: readonly Recipient[],
  ): EventReplayQueued["deliveries"] {
    const { charger, accounts } = this.deps;
    const { bucket, row } = this.reload(replay);
    if (bucket === undefined || row === null || recipients.length === 0) return [];
    const further = (recipients.length - 1) * mebibytesOf(row.payload_bytes);
    // The replay itself has paid for the first one.
    if (further > 0) charger.charge(tx, accounts.account(bucket.account_ref), REPLAY, further);
    return this.targets.queue(tx, bucket, row, recipients);
  }

  /** An event with its bucket and payload; null when it is deleted. */
  stored(bucket: BucketActor, sequence: number): Found | null {
    const row = this.deps.events.find(bucket.ref, sequence);
    const payload = row === null ? null : this.deps.events.payload(sequence);
    return row === null || payload === null ? null : { bucket, row, payload };
  }

  /** Records a replay. If the target accepted it, the event is delivered. */
  recordAttempt(tx: Tx, replay: Found, attempt: Attempt): void {
    const { outcome } = attempt;
    this.storeAttempt(tx, replay, attempt);
    if (outcome.answered && isDelivered(outcome.status)) this.recordReplay(tx, replay, outcome.status);
  }

  private storeAttempt(tx: Tx, replay: Found, attempt: Attempt): void {
    const { row } = this.reload(replay);
    if (row !== null) this.deps.events.addAttempt(tx, row.sequence, attemptOf("replay", attempt));
  }

  /** Bucket and event may have been deleted while the request was in flight. */
  private reload({ bucket: { id }, row }: Found): { bucket?: BucketActor; row: EventRow | null } {
    const bucket = this.buckets.find(id);
    if (bucket === undefined) return { row: null };
    return { bucket, row: this.deps.events.find(bucket.ref, row.sequence) };
  }

  private recordReplay(tx: Tx, replay: Found, response_status: number): void {
    const { bucket, row } = this.reload(replay);
    if (bucket === undefined || row === null) return;
    this.deps.events.setAttempt(tx, {
      ...row,
      status: "delivered",
      attempts: row.attempts + 1,
      response_status,
      error: null,
      delivered_at: row.delivered_at ?? tx.now,
      retry_at: null,
    });
    if (row.status !== "delivered") this.buckets.count(tx, bucket, row.status, "delivered");
  }

  /** An event with its bucket and payload. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  find(projectRef: number, bucketId: string, eventId: string): Found {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const sequence = sequenceOf(eventId);
    const row = sequence === null ? null : this.deps.events.find(bucket.ref, sequence);
    const payload = row === null ? null : this.deps.events.payload(row.sequence);
    if (row === null || payload === null) {
      throw new ApiError("catch.event_not_found", "The bucket has no event with this id.");
    }
    return { bucket, row, payload };
  }
}

/** The start of a body in one line; null for one that is not text. */
function previewOf(start: Uint8Array | null): string | null {
  if (start === null) return null;
  // The last character may be cut.
  const text = new TextDecoder().decode(start, { stream: true });
  if (text.includes("\ufffd") || text.includes("\0")) return null;
  return [...text.replaceAll(/\s+/g, " ").trim()].slice(0, PREVIEW_LENGTH).join("");
}

function eventView(bucket: BucketActor, row: EventRow): EventItem {
  const { bucket_ref, sequence, retry_at, provider_event_id, duplicates, payload_bytes, ...shown } = row;
  return {
    id: eventIdOf(sequence),
    bucket_id: bucket.id,
    ...shown,
    received_at: isoTime(row.received_at),
    delivered_at: isoTimeOrNull(row.delivered_at),
    next_attempt_at: isoTimeOrNull(retry_at === QUEUED ? null : retry_at),
  };
}

const BEFORE_MESSAGE = "must be an ISO 8601 time such as 2026-03-10T12:00:00Z";

/** The decoded body, parsed if it is JSON that can be serialized again, otherwise its text. */
function readPayload(body: Buffer, headers: EventHeaders): unknown {
  const { "content-encoding": encoding = null, "content-type": type = null } = headers;
  const text = contentText(body, { encoding, type }) ?? body.toString("utf8");
  if (isNestedDeeper(text, JSON_LEVELS_MAX)) return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
