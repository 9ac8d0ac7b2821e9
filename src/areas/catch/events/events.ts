import { isNestedDeeper, JSON_LEVELS_MAX } from "../../../json-text.ts";
import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { AcrossNetwork } from "../../../kernel/http/operations/perform.ts";
import { encodeCursor, pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull, timestampOfQuery } from "../../../kernel/time/date-time.ts";
import { aboutBucket, type BucketActor, type Buckets, type CatchDeps } from "../buckets/buckets.ts";
import type { Removal } from "../buckets/removal.ts";
import { assertReplayable, isDelivered, knownProvider } from "../domain.ts";
import { attemptOf, type Tried } from "../forwarding/attempts.ts";
import { forward } from "../forwarding/forwarder.ts";
import { eventIdOf, firstSequenceAt, sequenceOf } from "../ids.ts";
import { readHeaders } from "../ingestion/event-headers.ts";
import type { EventAckBody } from "../pull/schema.ts";
import {
  type CaughtEvent,
  EVENTS_LIMIT,
  type EventExportQuery,
  type EventItem,
  type EventPage,
  type EventQuery,
  type EventReplayed,
  type EventsDeleted,
} from "../schema.ts";
import type { EventRow, PayloadRow } from "../store.ts";
import { exportPage } from "./export.ts";
import { EventSearch } from "./search.ts";

/** An event of a bucket, whole. */
interface Found {
  readonly bucket: BucketActor;
  readonly row: EventRow;
  readonly payload: PayloadRow;
}

/** A search that can be begun once it is paid. */
interface PendingSearch {
  readonly run: (signal: AbortSignal) => Promise<EventPage>;
}

/** The use cases of events, but for their coming in and going out. */
export class EventService {
  private readonly searching: EventSearch;

  constructor(
    private readonly deps: Pick<
      CatchDeps,
      "events" | "outbound" | "accounts" | "clock" | "vault" | "writer" | "secrets"
    >,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
  ) {
    this.searching = new EventSearch(deps.events);
  }

  /**
   * A page of a bucket's events, newest first.
   * @throws ApiError `catch.bucket_not_found`, `catch.provider_unsupported`, `validation_error` for a foreign cursor.
   */
  list(projectRef: number, bucketId: string, query: EventQuery): EventPage {
    const { bucket, filter, before, from, limit } = this.wanted(projectRef, bucketId, query);
    const rows = this.deps.events.page(bucket.ref, filter, before, limit + 1);
    const page = pageOf(
      rows.filter(({ sequence }) => sequence >= from),
      limit,
      (row) => [row.sequence],
    );
    return { events: page.items.map((row) => eventView(bucket, row)), cursor: page.cursor ?? null };
  }

  /** Where a list begins and ends. A number is a time: after the wall clock was set back, the times are those before it. */
  private wanted(projectRef: number, bucketId: string, query: EventQuery) {
    const { limit = EVENTS_LIMIT, cursor, status = null, since, until } = query;
    const given = knownProvider(query.provider);
    const end =
      until === undefined ? Number.POSITIVE_INFINITY : firstSequenceAt(timestampOfQuery("until", until));
    const before = Math.min(pageStart(cursor), end);
    const from = since === undefined ? 0 : firstSequenceAt(timestampOfQuery("since", since));
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    return { bucket, filter: { provider: given ?? bucket.provider, status }, before, from, limit };
  }

  /**
   * The search for events that no index leads to, not yet begun: it takes its time, between other requests.
   * @throws ApiError as {@link list}.
   */
  search(projectRef: number, bucketId: string, query: EventQuery): PendingSearch {
    const { q, event_type, verification } = query;
    const { bucket, ...where } = this.wanted(projectRef, bucketId, query);
    const wanted = (row: EventRow): boolean =>
      (event_type === undefined || row.event_type === event_type) &&
      (verification === undefined || row.verification === verification);
    return {
      run: async (signal) => {
        const terms = { bucketRef: bucket.ref, text: q ?? null, wanted, ...where };
        const { rows, through, isPartial } = await this.searching.find(terms, signal);
        return {
          events: rows.map((row) => eventView(bucket, row)),
          cursor: through === null ? null : encodeCursor([through]),
          ...(isPartial ? { partial: true } : {}),
        };
      },
    };
  }

  /** One event, whole. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  get(projectRef: number, bucketId: string, eventId: string): CaughtEvent {
    return this.whole(this.find(projectRef, bucketId, eventId));
  }

  /** An event of a bucket, whole; null when it has been removed since its row was read. */
  ofRow(bucket: BucketActor, row: EventRow): CaughtEvent | null {
    const payload = this.deps.events.payload(row.sequence);
    return payload === null ? null : this.whole({ bucket, row, payload });
  }

  /** The exact bytes of an event's body. @throws ApiError as {@link get} */
  raw(projectRef: number, bucketId: string, eventId: string): Uint8Array {
    return this.find(projectRef, bucketId, eventId).payload.body;
  }

  /**
   * A page of an export, not yet begun: see {@link exportPage}.
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
      throw invalidField("cursor", "is not one of this export: it must be an X-Next-Cursor");
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

  /** An event with everything that was received, and what became of it. */
  private whole({ bucket, row, payload }: Found): CaughtEvent {
    const { events, vault } = this.deps;
    const body = Buffer.from(payload.body);
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
      size_bytes: body.length,
      provider_event_id: row.provider_event_id,
      duplicates: row.duplicates,
      payload: readPayload(body),
      payload_base64: body.toString("base64"),
      attempt_log: events.attempts(row.sequence).map((one) => ({ ...one, at: isoTime(one.at) })),
    };
  }

  /**
   * Sends an event once more. A replay that the target takes makes the event delivered; any other leaves it as it is,
   * and costs nothing.
   *
   * @throws ApiError, from its parts: `catch.bucket_not_found`, `catch.event_not_found`, `bucket_paused`,
   * `catch.signature_invalid`, and `catch.replay_failed` when the target gave no answer.
   */
  replay(projectRef: number, bucketId: string, eventId: string): AcrossNetwork<Found, Tried, EventReplayed> {
    return {
      claim: () => {
        const found = this.find(projectRef, bucketId, eventId);
        assertReplayable(found.bucket, found.row.verification);
        return found;
      },
      outside: async (replay) => {
        const tried = await forward(this.deps, replay.bucket, replay.row, replay.payload);
        // What is refused below leaves nothing behind: what is to be kept of it has a unit of work of its own.
        if (!tried.outcome.answered) await this.deps.writer.submit((tx) => this.keepTry(tx, replay, tried));
        return tried;
      },
      settle: (tx, replay, tried, refund) => {
        const { outcome } = tried;
        if (!outcome.answered) {
          const { message } = outcome.failure;
          throw new ApiError("catch.replay_failed", `The target could not be reached: ${message}.`);
        }
        const taken = isDelivered(outcome.status);
        const { bucket, row } = replay;
        const after = { bucket_id: bucket.id, response_status: outcome.status };
        tx.audit({
          summary: `Event replayed from bucket ${bucket.id}`,
          target: { type: "event", id: eventIdOf(row.sequence) },
          before: null,
          after,
        });
        this.recordAgain(tx, replay, tried);
        if (!taken) refund();
        return { status: taken ? "replayed" : "failed", response_status: outcome.status };
      },
    };
  }

  /**
   * Deletes a bucket's events received before a time. Many are removed in many small units of work, so that no other
   * request waits for them.
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
        const before = timestampOfQuery("before", time, BEFORE_WANTED);
        const bucket = this.buckets.ofProject(projectRef, bucketId);
        const after = { deleted_before: isoTime(before) };
        tx.audit({ ...aboutBucket(bucket, "emptied of old events"), before: null, after });
        return [before, bucket];
      },
      outside: ([before, bucket]) => this.removal.removeBefore(bucket, before),
      settle: (_tx, _claim, deleted_count) => ({ deleted_count }),
    };
  }

  /** Records what came of an acknowledged event of `pull`. The same again changes nothing, nor does a later failure. */
  acknowledge(tx: Tx, projectRef: number, bucketId: string, eventId: string, ack: EventAckBody): EventItem {
    const { bucket, row } = this.find(projectRef, bucketId, eventId);
    if (!bucket.pull) {
      const why =
        "This bucket sends its events on itself: only those of a bucket with delivery pull are acknowledged.";
      throw new ApiError("conflict", why);
    }
    const taken = ack.result === "delivered";
    const isKept = row.status === "delivered" || row.verification === "invalid";
    if (isKept || row.status === ack.result) return eventView(bucket, row);
    const { response_status = null, duration_ms = 0 } = ack;
    const error = taken ? null : (ack.error ?? problemWith(response_status));
    const at = tx.now - duration_ms;
    const said = { response_status, error };
    this.deps.events.addAttempt(tx, row.sequence, {
      at,
      kind: "pull",
      duration_ms,
      ...said,
      response_body: null,
    });
    const acknowledged: EventRow = {
      ...row,
      ...said,
      status: ack.result,
      attempts: row.attempts + 1,
      retry_at: null,
      delivered_at: taken ? tx.now : null,
    };
    this.deps.events.setTried(tx, acknowledged);
    this.buckets.count(tx, bucket, row.status, ack.result);
    return eventView(bucket, acknowledged);
  }

  /** Sends an event once more, whole as it is now; null when it is no longer there. What came of it is not recorded yet. */
  async sendAgain(bucket: BucketActor, sequence: number): Promise<{ replay: Found; tried: Tried } | null> {
    const row = this.deps.events.find(bucket.ref, sequence);
    const payload = row === null ? null : this.deps.events.payload(sequence);
    if (row === null || payload === null) return null;
    return { replay: { bucket, row, payload }, tried: await forward(this.deps, bucket, row, payload) };
  }

  /** Records a replay. One that the target takes makes the event delivered. */
  recordAgain(tx: Tx, replay: Found, tried: Tried): void {
    const { outcome } = tried;
    this.keepTry(tx, replay, tried);
    if (outcome.answered && isDelivered(outcome.status)) this.recordReplay(tx, replay, outcome.status);
  }

  private keepTry(tx: Tx, replay: Found, tried: Tried): void {
    const { row } = this.again(replay);
    if (row !== null) this.deps.events.addAttempt(tx, row.sequence, attemptOf("replay", tried));
  }

  /** Bucket and event may have been deleted while the target was answering. */
  private again({ bucket: { id }, row }: Found): { bucket?: BucketActor; row: EventRow | null } {
    const bucket = this.buckets.find(id);
    if (bucket === undefined) return { row: null };
    return { bucket, row: this.deps.events.find(bucket.ref, row.sequence) };
  }

  private recordReplay(tx: Tx, replay: Found, response_status: number): void {
    const { bucket, row } = this.again(replay);
    if (bucket === undefined || row === null) return;
    this.deps.events.setTried(tx, {
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

  private find(projectRef: number, bucketId: string, eventId: string): Found {
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

function eventView(bucket: BucketActor, row: EventRow): EventItem {
  const { bucket_ref, sequence, retry_at, provider_event_id, duplicates, ...shown } = row;
  return {
    id: eventIdOf(sequence),
    bucket_id: bucket.id,
    ...shown,
    received_at: isoTime(row.received_at),
    delivered_at: isoTimeOrNull(row.delivered_at),
  };
}

/** What is wrong with an answer that was no success; with none at all, that. */
function problemWith(status: number | null): string {
  return status === null ? "no answer" : `answered with status ${status}`;
}

const BEFORE_WANTED = "must be an ISO 8601 time such as 2026-03-10T12:00:00Z";

/** The parsed body where it is JSON that can be written again, otherwise its text. */
function readPayload(body: Buffer): unknown {
  const text = body.toString("utf8");
  if (isNestedDeeper(text, JSON_LEVELS_MAX)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
