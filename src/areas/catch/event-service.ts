import { isoTime } from "../../kernel/date-time.ts";
import { ApiError } from "../../kernel/errors.ts";
import { decodeNumberCursor, pageOf } from "../../kernel/http/pagination.ts";
import { isNestedDeeper, JSON_LEVELS_MAX } from "../../kernel/json-text.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Bucket } from "./bucket.ts";
import type { Buckets } from "./buckets.ts";
import type { DeliveryResult, Outgoing } from "./delivery.ts";
import {
  assertProvider,
  assertReplayable,
  type EventStatus,
  eventNotFound,
  isDelivered,
  type Provider,
  type Verification,
} from "./domain.ts";
import { readHeaders } from "./event-headers.ts";
import { eventIdOf, sequenceOf } from "./event-id.ts";
import {
  decodeProvider,
  decodeStatus,
  decodeVerification,
  type EventRow,
  type EventStore,
} from "./event-store.ts";

/** An event, as lists show it. */
export interface EventView {
  readonly id: string;
  readonly bucket_id: string;
  readonly provider: Provider | null;
  readonly status: EventStatus;
  readonly verification: Verification;
  readonly received_at: string;
  readonly attempts: number;
  readonly response_status: number | null;
  readonly error: string | null;
  readonly delivered_at: string | null;
}

/** An event with everything that was received. */
export interface FullEventView extends EventView {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  readonly payload_base64: string;
}

/** What a list of events is asked for. */
export interface EventListQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly provider?: string | undefined;
  readonly status?: EventStatus | undefined;
}

/** A replay that has been allowed and paid. */
export interface Replay {
  readonly bucket: Bucket;
  readonly event: Outgoing;
}

/** The use cases of events, but for their coming in and going out. */
export class EventService {
  private readonly buckets: Buckets;
  private readonly events: EventStore;
  private readonly vault: Vault;

  constructor(deps: { buckets: Buckets; events: EventStore; vault: Vault }) {
    this.buckets = deps.buckets;
    this.events = deps.events;
    this.vault = deps.vault;
  }

  /**
   * A page of a bucket's events, newest first.
   * @throws ApiError `catch.bucket_not_found`, `catch.provider_unsupported`, `validation_error` for a foreign cursor.
   */
  list(
    projectRef: number,
    bucketId: string,
    query: EventListQuery,
  ): { events: EventView[]; cursor: string | null } {
    const before = query.cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeNumberCursor(query.cursor);
    const provider = query.provider === undefined ? null : assertProvider(query.provider);
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const filter = { provider, status: query.status ?? null };
    const rows = this.events.page(bucket.ref, filter, before, query.limit + 1);
    const page = pageOf(rows, query.limit, (row) => [row.sequence]);
    return { events: page.items.map((row) => viewOf(bucket, row)), cursor: page.cursor ?? null };
  }

  /** One event, whole. @throws ApiError `catch.bucket_not_found`, `catch.event_not_found` */
  get(projectRef: number, bucketId: string, eventId: string): FullEventView {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const { row, payload } = this.find(bucket, eventId);
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
  claimReplay(projectRef: number, bucketId: string, eventId: string): Replay {
    const bucket = this.buckets.ofProject(projectRef, bucketId);
    const { row, payload } = this.find(bucket, eventId);
    assertReplayable(bucket.state, decodeVerification(row.verification));
    const { sequence, received_at: receivedAt } = row;
    return { bucket, event: { sequence, provider: decodeProvider(row.provider), receivedAt, payload } };
  }

  /**
   * Records what became of a replay. One that the target took makes the event delivered; any other leaves it as it
   * is, and costs nothing.
   *
   * @throws ApiError `catch.replay_failed` when the target gave no answer.
   */
  settleReplay(
    tx: Tx,
    replay: Replay,
    result: DeliveryResult,
    refund: () => void,
  ): { status: "replayed" | "failed"; response_status: number } {
    if (!result.answered) {
      throw new ApiError("catch.replay_failed", `The target could not be reached: ${result.error}.`);
    }
    if (!isDelivered(result.status)) {
      refund();
      return { status: "failed", response_status: result.status };
    }
    this.recordReplay(tx, replay, result.status);
    return { status: "replayed", response_status: result.status };
  }

  private recordReplay(tx: Tx, { bucket: { id }, event }: Replay, responseStatus: number): void {
    // Bucket and event may have been deleted while the target thought.
    const bucket = this.buckets.find(id);
    const row = bucket === undefined ? null : this.events.find(bucket.ref, event.sequence);
    if (bucket === undefined || row === null) return;
    this.events.setDelivery(tx, bucket.ref, row.sequence, {
      status: "delivered",
      attempts: row.attempts + 1,
      responseStatus,
      error: null,
      deliveredAt: row.delivered_at ?? tx.now,
      retryAt: null,
    });
    const status = decodeStatus(row.status);
    if (status !== "delivered") this.buckets.count(tx, bucket, status, "delivered");
  }

  private find(bucket: Bucket, eventId: string) {
    const sequence = sequenceOf(eventId);
    const row = sequence === null ? null : this.events.find(bucket.ref, sequence);
    const payload = row === null ? null : this.events.payload(row.sequence);
    if (row === null || payload === null) throw eventNotFound();
    return { row, payload };
  }
}

function viewOf(bucket: Bucket, row: EventRow): EventView {
  return {
    id: eventIdOf(row.sequence),
    bucket_id: bucket.id,
    provider: decodeProvider(row.provider),
    status: decodeStatus(row.status),
    verification: decodeVerification(row.verification),
    received_at: isoTime(row.received_at),
    attempts: row.attempts,
    response_status: row.response_status,
    error: row.error,
    delivered_at: row.delivered_at === null ? null : isoTime(row.delivered_at),
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
