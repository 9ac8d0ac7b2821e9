import { isNestedDeeper, JSON_LEVELS_MAX } from "../../json-text.ts";
import { isoTime, isoTimeOrNull, momentOfQuery } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import { pageOf, pageStart } from "../../kernel/http/pagination.ts";
import type { AcrossNetwork } from "../../kernel/http/perform.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { aboutBucket, type BucketActor, type Buckets, type CatchDeps } from "./buckets.ts";
import { assertReplayable, isDelivered, knownProvider } from "./domain.ts";
import { readHeaders } from "./event-headers.ts";
import { forward } from "./forwarder.ts";
import { eventIdOf, sequenceOf } from "./ids.ts";
import type { Removal } from "./removal.ts";
import {
  type CaughtEvent,
  EVENTS_LIMIT,
  type EventItem,
  type EventPage,
  type EventQuery,
  type EventReplayed,
  type EventsDeleted,
} from "./schema.ts";
import type { EventRow, PayloadRow } from "./store.ts";

/** An event of a bucket, whole. */
interface Found {
  readonly bucket: BucketActor;
  readonly row: EventRow;
  readonly payload: PayloadRow;
}

/** The use cases of events, but for their coming in and going out. */
export class EventService {
  constructor(
    private readonly deps: Pick<CatchDeps, "events" | "outbound" | "accounts" | "clock" | "vault">,
    private readonly buckets: Buckets,
    private readonly removal: Removal,
  ) {}

  /**
   * A page of a bucket's events, newest first.
   * @throws ApiError `catch.bucket_not_found`, `catch.provider_unsupported`, `validation_error` for a foreign cursor.
   */
  list(projectRef: number, bucketId: string, query: EventQuery): EventPage {
    const { limit = EVENTS_LIMIT, cursor, status = null } = query;
    const before = pageStart(cursor);
    const provider = knownProvider(query.provider);
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const rows = this.deps.events.page(bucket.ref, { provider, status }, before, limit + 1);
    const page = pageOf(rows, limit, (row) => [row.sequence]);
    return { events: page.items.map((row) => eventView(bucket, row)), cursor: page.cursor ?? null };
  }

  /** One event, whole. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  get(projectRef: number, bucketId: string, eventId: string): CaughtEvent {
    const { bucket, row, payload } = this.find(projectRef, bucketId, eventId);
    const body = Buffer.from(payload.body);
    return {
      ...eventView(bucket, row),
      headers: readHeaders(payload.headers, this.deps.vault, bucket.id),
      payload: readPayload(body),
      payload_base64: body.toString("base64"),
    };
  }

  /**
   * Sends an event once more. A replay that the target takes makes the event delivered; any other leaves it as it is,
   * and costs nothing.
   *
   * @throws ApiError, from its parts: `catch.bucket_not_found`, `catch.event_not_found`, `bucket_paused`,
   * `catch.signature_invalid`, and `catch.replay_failed` when the target gave no answer.
   */
  replay(
    projectRef: number,
    bucketId: string,
    eventId: string,
  ): AcrossNetwork<Found, OutboundOutcome, EventReplayed> {
    return {
      claim: () => {
        const found = this.find(projectRef, bucketId, eventId);
        assertReplayable(found.bucket, found.row.verification);
        return found;
      },
      outside: ({ bucket, row, payload }) => forward(this.deps, bucket, row, payload),
      settle: (tx, replay, outcome, refund) => {
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
          ...{ before: null, after },
        });
        if (taken) this.recordReplay(tx, replay, outcome.status);
        else refund();
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
        const before = momentOfQuery("before", time, BEFORE_WANTED);
        const bucket = this.buckets.ofProject(projectRef, bucketId);
        const after = { deleted_before: isoTime(before) };
        tx.audit({ ...aboutBucket(bucket, "emptied of old events"), before: null, after });
        return [before, bucket];
      },
      outside: ([before, bucket]) => this.removal.removeBefore(bucket, before),
      settle: (_tx, _claim, deleted_count) => ({ deleted_count }),
    };
  }

  private recordReplay(tx: Tx, replay: Found, response_status: number): void {
    // Bucket and event may have been deleted while the target was answering.
    const bucket = this.buckets.find(replay.bucket.id);
    const row = bucket === undefined ? null : this.deps.events.find(bucket.ref, replay.row.sequence);
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

function eventView(bucket: BucketActor, { bucket_ref, sequence, retry_at, ...row }: EventRow): EventItem {
  return {
    ...{ id: eventIdOf(sequence), bucket_id: bucket.id, ...row },
    received_at: isoTime(row.received_at),
    delivered_at: isoTimeOrNull(row.delivered_at),
  };
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
