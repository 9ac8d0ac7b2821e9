import { isNestedDeeper, JSON_LEVELS_MAX } from "../../json-text.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Caller } from "../../kernel/http/caller.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import type { BucketActor, Buckets } from "./buckets.ts";
import {
  assertReplayable,
  assertRoomForBucket,
  eventNotFound,
  isDelivered,
  knownProvider,
} from "./domain.ts";
import { readHeaders } from "./event-headers.ts";
import type { EventRow, EventStore, PayloadRow } from "./event-store.ts";
import type { Forwarder, ForwardResult } from "./forwarder.ts";
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
} from "./schema.ts";
import type { BucketStore } from "./store.ts";

/** The use cases of buckets. */
export class BucketService {
  constructor(
    private readonly deps: {
      readonly store: BucketStore;
      readonly buckets: Buckets;
      readonly forwarder: Forwarder;
      readonly removal: Removal;
      readonly targets: TargetPolicy;
      readonly tiers: Tiers;
    },
  ) {}

  /** @throws ApiError `validation_error`, `catch.provider_unsupported`, `bucket_limit_exceeded` */
  create(tx: Tx, { account, project }: Caller, body: BucketCreateBody): Bucket {
    const { store, buckets, tiers } = this.deps;
    this.assertTarget(body.target_url);
    const provider = knownProvider(body.provider);
    assertRoomForBucket(store.countOfAccount(account.ref), tiers[account.tier].buckets);
    const owner = { accountRef: account.ref, projectRef: project.ref };
    return buckets.create(tx, owner, { ...body, provider }).view();
  }

  list(projectRef: number): BucketList {
    return { buckets: this.deps.buckets.listOfProject(projectRef).map((bucket) => bucket.view()) };
  }

  /** @throws ApiError `catch.bucket_not_found` */
  get(projectRef: number, id: string): Bucket {
    return this.deps.buckets.ofProject(projectRef, id).view();
  }

  /** @throws ApiError `catch.bucket_not_found`, `validation_error` */
  update(tx: Tx, projectRef: number, id: string, body: BucketUpdateBody): Bucket {
    const { buckets, forwarder } = this.deps;
    const bucket = buckets.ofProject(projectRef, id);
    const { state, target_url, signing_secret } = body;
    if (target_url !== undefined) this.assertTarget(target_url);
    if (state === undefined && target_url === undefined && signing_secret === undefined) return bucket.view();
    const wasLive = bucket.live;
    buckets.change(tx, bucket, body);
    if (bucket.live && !wasLive) forwarder.wentLive(tx, bucket);
    return bucket.view();
  }

  /** From here on the bucket ignores what it is sent; its events are removed in the background. */
  delete(tx: Tx, projectRef: number, id: string): void {
    const { buckets, removal } = this.deps;
    const bucket = buckets.ofProject(projectRef, id);
    buckets.markDeleted(tx, bucket);
    removal.enqueue(tx, bucket.ref);
  }

  private assertTarget(url: string): void {
    this.deps.targets.assertUrl("target_url", url, { requireHttps: true });
  }
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
    private readonly buckets: Buckets,
    private readonly events: EventStore,
    private readonly vault: Vault,
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
    const rows = this.events.page(bucket.ref, { provider, status }, before, limit + 1);
    const page = pageOf(rows, limit, (row) => [row.sequence]);
    return { events: page.items.map((row) => viewOf(bucket, row)), cursor: page.cursor ?? null };
  }

  /** One event, whole. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  get(projectRef: number, bucketId: string, eventId: string): CaughtEvent {
    const { bucket, row, payload } = this.find(projectRef, bucketId, eventId);
    const body = Buffer.from(payload.body);
    return {
      ...viewOf(bucket, row),
      headers: readHeaders(payload.headers, this.vault, bucket.id),
      payload: readPayload(body),
      payload_base64: body.toString("base64"),
    };
  }

  /**
   * Takes an event to be sent once more.
   * @throws ApiError `catch.bucket_not_found`, `catch.event_not_found`, `bucket_paused`, `catch.signature_invalid`
   */
  claimReplay(projectRef: number, bucketId: string, eventId: string): Found {
    const found = this.find(projectRef, bucketId, eventId);
    assertReplayable(found.bucket.state, found.row.verification);
    return found;
  }

  /**
   * Records what became of a replay. One that the target took makes the event delivered; any other leaves it as it
   * is, and costs nothing.
   *
   * @throws ApiError `catch.replay_failed` when the target gave no answer.
   */
  settleReplay(tx: Tx, replay: Found, result: ForwardResult, refund: () => void): EventReplayed {
    if (!result.answered) {
      throw new ApiError("catch.replay_failed", `The target could not be reached: ${result.error}.`);
    }
    const taken = isDelivered(result.status);
    if (taken) this.recordReplay(tx, replay, result.status);
    else refund();
    return { status: taken ? "replayed" : "failed", response_status: result.status };
  }

  private recordReplay(tx: Tx, replay: Found, responseStatus: number): void {
    // Bucket and event may have been deleted while the target was answering.
    const bucket = this.buckets.find(replay.bucket.id);
    const row = bucket === undefined ? null : this.events.find(bucket.ref, replay.row.sequence);
    if (bucket === undefined || row === null) return;
    this.events.setTried(tx, bucket.ref, row.sequence, {
      status: "delivered",
      attempts: row.attempts + 1,
      response_status: responseStatus,
      error: null,
      delivered_at: row.delivered_at ?? tx.now,
      retry_at: null,
    });
    if (row.status !== "delivered") this.buckets.count(tx, bucket, row.status, "delivered");
  }

  private find(projectRef: number, bucketId: string, eventId: string): Found {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const sequence = sequenceOf(eventId);
    const row = sequence === null ? null : this.events.find(bucket.ref, sequence);
    const payload = row === null ? null : this.events.payload(row.sequence);
    if (row === null || payload === null) throw eventNotFound();
    return { bucket, row, payload };
  }
}

function viewOf(bucket: BucketActor, row: EventRow): EventItem {
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
