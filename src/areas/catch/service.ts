import { isNestedDeeper, JSON_LEVELS_MAX } from "../../json-text.ts";
import { isoTime, isoTimeOrNull, parseDateTime } from "../../kernel/date-time.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { AcrossNetwork } from "../../kernel/http/perform.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { BucketActor, Buckets, CatchDeps } from "./buckets.ts";
import {
  assertReplayable,
  assertRoomForBucket,
  eventNotFound,
  isDelivered,
  knownProvider,
} from "./domain.ts";
import { readHeaders } from "./event-headers.ts";
import { type Forwarder, forward } from "./forwarder.ts";
import { eventIdOf, sequenceOf } from "./ids.ts";
import type { Removal } from "./removal.ts";
import {
  type Bucket,
  type BucketCreateBody,
  type BucketList,
  type BucketUpdateBody,
  type CaughtEvent,
  EVENTS_LIMIT,
  type EventItem,
  type EventPage,
  type EventQuery,
  type EventReplayed,
  type EventsDeleted,
} from "./schema.ts";
import type { EventRow, PayloadRow } from "./store.ts";

/** The use cases of buckets. */
export class BucketService {
  constructor(
    private readonly deps: CatchDeps,
    private readonly buckets: Buckets,
    private readonly forwarder: Forwarder,
    private readonly removal: Removal,
  ) {}

  /** @throws ApiError `validation_error`, `catch.provider_unsupported`, `bucket_limit_exceeded` */
  create(tx: Tx, caller: Caller, body: BucketCreateBody): Bucket {
    const { store, tiers } = this.deps;
    this.assertTarget(body.target_url);
    const provider = knownProvider(body.provider);
    const { ref, tier } = caller.account;
    assertRoomForBucket(store.countOfAccount(ref), tiers[tier].buckets);
    return bucketView(this.buckets.create(tx, caller, { ...body, provider }));
  }

  list(projectRef: number): BucketList {
    return { buckets: this.buckets.listOfProject(projectRef).map(bucketView) };
  }

  /** @throws ApiError `catch.bucket_not_found` */
  get(projectRef: number, id: string): Bucket {
    return bucketView(this.buckets.ofProject(projectRef, id));
  }

  /** @throws ApiError `catch.bucket_not_found`, `validation_error` */
  update(tx: Tx, projectRef: number, id: string, body: BucketUpdateBody): Bucket {
    const bucket = this.buckets.ofProject(projectRef, id);
    const { state, target_url, signing_secret } = body;
    if (target_url !== undefined) this.assertTarget(target_url);
    if (state === undefined && target_url === undefined && signing_secret === undefined)
      return bucketView(bucket);
    const wasLive = bucket.live;
    this.buckets.change(tx, bucket, body);
    if (bucket.live && !wasLive) this.forwarder.wentLive(tx, bucket);
    return bucketView(bucket);
  }

  /** From here on the bucket ignores what it is sent; its events are removed in the background. */
  delete(tx: Tx, projectRef: number, id: string): void {
    const bucket = this.buckets.ofProject(projectRef, id);
    this.buckets.markDeleted(tx, bucket);
    this.removal.enqueue(tx, bucket.ref);
  }

  private assertTarget(url: string): void {
    this.deps.outbound.policy.assertUrl("target_url", url, { requireHttps: true });
  }
}

function bucketView(bucket: BucketActor): Bucket {
  const { id, target_url, provider, signing_secret, live, counts } = bucket;
  return {
    ...{ id, target_url, provider },
    has_signing_secret: signing_secret !== null,
    state: live ? "live" : "paused",
    created_at: isoTime(bucket.created_at),
    updated_at: isoTime(bucket.updated_at),
    events: { ...counts },
  };
}

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
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(cursor);
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
      claim: () => [readTime(time), this.buckets.ofProject(projectRef, bucketId)],
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
    if (row === null || payload === null) throw eventNotFound();
    return { bucket, row, payload };
  }
}

function eventView(bucket: BucketActor, row: EventRow): EventItem {
  return {
    id: eventIdOf(row.sequence),
    bucket_id: bucket.id,
    provider: row.provider,
    status: row.status,
    verification: row.verification,
    received_at: isoTime(row.received_at),
    attempts: row.attempts,
    response_status: row.response_status,
    error: row.error,
    delivered_at: isoTimeOrNull(row.delivered_at),
  };
}

/** A `+` that was not encoded arrives as a space. @throws ApiError `validation_error` */
function readTime(text: string): number {
  const moment = parseDateTime(text.replace(/ (\d\d:\d\d)$/, "+$1"));
  if (moment !== null) return moment;
  throw invalidField("before", "must be an ISO 8601 time such as 2026-03-10T12:00:00Z");
}

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
