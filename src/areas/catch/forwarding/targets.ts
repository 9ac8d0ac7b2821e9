import { findExcess, JSON_LEVELS_MAX, parseJson } from "../../../json-text.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import { type ContentHeaders, contentText } from "../../../kernel/data/content.ts";
import { hopsHeader } from "../../../kernel/outbound/hops.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import {
  type BucketActor,
  type Buckets,
  containsSecret,
  type EndpointDelivery,
  type Recipient,
  type SharedDeps,
} from "../buckets/buckets.ts";
import { bucketIdIn } from "../buckets/own-path.ts";
import { type EventStatus, mebibytesOf } from "../domain.ts";
import { contentHeadersOf, readHeaders } from "../event-headers.ts";
import { eventIdOf, sequenceOf } from "../event-ids.ts";
import { type EventRow, QUEUED } from "../store.ts";
import { forwardedMethod, forwardedRequest, standardHeadersOf } from "./exchange.ts";
import type { FailureNotices } from "./failure-notices.ts";

/** Size from which a body is parsed in slices, in bytes: parsing a smaller one takes less than a millisecond. */
const SLICED_BYTES_MIN = 64 * 1024;

/** An event by the ids of its bucket and itself, as its deliveries refer to it. */
interface EventIds {
  readonly bucket_id: string;
  readonly event_id: string;
}

/** The properties of an event that filters are evaluated on. */
interface MatchedEvent {
  readonly event_type: string | null;
  /** As they are stored. */
  readonly headers: string;
  readonly body: Uint8Array;
}

/** A change of a delivery of an event. */
interface DeliveryChange {
  /** The attempt that caused it; null for other causes, such as a resend. */
  readonly attempt: { readonly response_status: number | null; readonly error: string | null } | null;
  /** Time of the next attempt, in epoch milliseconds; null when it is not known. */
  readonly retryAt: number | null;
}

/** Events of buckets whose targets are endpoints: each has a delivery for every endpoint that accepts it. */
export class Targets {
  constructor(
    private readonly deps: SharedDeps,
    private readonly buckets: Buckets,
    private readonly failures: FailureNotices,
  ) {}

  /** The endpoints of a bucket that accept an event. Filters are evaluated in slices. */
  async matching(
    bucket: BucketActor,
    { event_type: type, headers, body }: MatchedEvent,
  ): Promise<Recipient[]> {
    const content = contentHeadersOf(headers);
    const isSliced = body.length > SLICED_BYTES_MIN || content.encoding !== null;
    const value = isSliced ? await parsedInSlices(body, content) : parsedOnce(body, content);
    const recipients: Recipient[] = [];
    for (const { endpoint_id, passes } of bucket.settings.targets) {
      if (slices.isOver) await slices.next();
      const recipient = this.deps.endpoints.accepting(bucket.project_ref, endpoint_id, { type, value });
      if (recipient !== null && (passes === null || passes(value()))) recipients.push(recipient);
    }
    return recipients;
  }

  /**
   * An endpoint of a bucket if it accepts an event and has no delivery of it that was delivered, is
   * pending, or was cancelled; null otherwise. `payload` is read when a filter needs it.
   */
  missedBy(
    bucket: BucketActor,
    endpointId: string,
    { sequence, event_type: type }: EventRow,
    payload: () => Pick<MatchedEvent, "headers" | "body"> | null,
  ): Recipient | null {
    const target = bucket.settings.targets.find(({ endpoint_id }) => endpoint_id === endpointId);
    if (target === undefined) return null;
    const sent = this.deliveries(bucket, sequence).filter(({ endpoint_id }) => endpoint_id === endpointId);
    if (sent.some(({ status }) => status !== "failed")) return null;
    let parsed: { readonly value: () => unknown } | undefined;
    const value = (): unknown => {
      if (parsed === undefined) {
        const read = payload();
        const nothing = (): unknown => undefined;
        parsed = { value: read === null ? nothing : parsedOnce(read.body, contentHeadersOf(read.headers)) };
      }
      return parsed.value();
    };
    const recipient = this.deps.endpoints.accepting(bucket.project_ref, endpointId, { type, value });
    return recipient !== null && (target.passes === null || target.passes(value())) ? recipient : null;
  }

  /**
   * Stores a delivery of an event to each endpoint, in the unit of work that accepts or replays it. An event that no
   * endpoint accepts is delivered: nothing remains to be sent.
   */
  queue(
    tx: Tx,
    bucket: BucketActor,
    row: EventRow,
    recipients: readonly Recipient[],
  ): { relay_id: string; endpoint_id: string }[] {
    const owner = { accountRef: bucket.account_ref, projectRef: bucket.project_ref };
    const event = { bucket_id: bucket.id, event_id: eventIdOf(row.sequence), type: row.event_type };
    const sent = this.deps.endpoints.send(tx, owner, event, recipients);
    this.record(tx, bucket, row, { attempt: null, retryAt: null });
    return sent;
  }

  /** Whether deliveries of an event to endpoints are pending. */
  isQueued(bucket: BucketActor, sequence: number): boolean {
    return this.deliveries(bucket, sequence).some(({ finished_at }) => finished_at === null);
  }

  /** The deliveries of an event to endpoints, oldest first. */
  deliveries({ settings }: BucketActor, sequence: number): EndpointDelivery[] {
    // A bucket that has never had targets has none.
    return settings.stored.targets === undefined ? [] : this.deps.endpoints.ofEvent(eventIdOf(sequence));
  }

  /** Whether an event is stored. */
  has(event: EventIds): boolean {
    return this.find(event) !== null;
  }

  /** The method that deliveries of an event have; null when it is deleted. */
  methodOf(event: EventIds): string | null {
    const found = this.find(event);
    return found === null ? null : forwardedMethod(this.deps, found.bucket, found.row.sequence);
  }

  /** Credits that a delivery of an event costs. */
  creditsOf(event: EventIds): number {
    return mebibytesOf(this.find(event)?.row.payload_bytes ?? 0);
  }

  /** The request of an event; null when it is deleted. */
  content(event: EventIds) {
    const found = this.find(event);
    const payload = found === null ? null : this.deps.events.payload(found.row.sequence);
    if (found === null || payload === null) return null;
    const { bucket, row } = found;
    const received = readHeaders(payload.headers, this.deps.vault, bucket.id);
    const { method, below, headers, body } = forwardedRequest(this.deps, bucket, row, received, payload);
    return {
      method,
      below,
      body,
      id: event.event_id,
      receivedAt: row.received_at,
      headers: {
        "content-type": "application/octet-stream",
        ...headers,
        ...senderHeaders(standardHeadersOf(received)),
      },
      eventHeaders: {
        "X-Svc-Event-Id": event.event_id,
        "X-Svc-Timestamp": String(row.received_at),
        ...hopsHeader(received),
      },
    };
  }

  /** Updates an event after a change of one of its deliveries, in the same unit of work. */
  changed(tx: Tx, event: EventIds, change: DeliveryChange): void {
    const found = this.find(event);
    if (found !== null) this.record(tx, found.bucket, found.row, change);
  }

  /** Ids of some buckets that deliver to an endpoint. */
  bucketsOf(endpointId: string): string[] {
    return this.deps.store.bucketsWithTarget(endpointId).map(({ id }) => id);
  }

  /** Whether a bucket delivers events to an endpoint that contain a secret of their sender. */
  forwardsSecretTo(endpointId: string): boolean {
    return this.bucketsOf(endpointId).some((id) => {
      const bucket = this.buckets.find(id);
      return bucket !== undefined && containsSecret(bucket);
    });
  }

  /**
   * The bucket that delivers to an endpoint and receives what is sent to `url`; null if there is none. `ownUrls`: starts of
   * this server's URLs.
   */
  loopThrough(endpointId: string, url: string, ownUrls: readonly string[]): string | null {
    const id = bucketIdIn(url, ownUrls);
    const bucket = id === null ? undefined : this.buckets.find(id);
    const isTarget = bucket?.settings.targets.some(({ endpoint_id }) => endpoint_id === endpointId) === true;
    return isTarget ? id : null;
  }

  private find({ bucket_id, event_id }: EventIds): { bucket: BucketActor; row: EventRow } | null {
    const bucket = this.buckets.find(bucket_id);
    const sequence = sequenceOf(event_id);
    const row =
      bucket === undefined || sequence === null ? null : this.deps.events.find(bucket.ref, sequence);
    return bucket === undefined || row === null ? null : { bucket, row };
  }

  private record(tx: Tx, bucket: BucketActor, row: EventRow, { attempt, retryAt }: DeliveryChange): void {
    const deliveries = this.deps.endpoints.ofEvent(eventIdOf(row.sequence));
    // A replay that fails does not change an event that was delivered.
    const status = row.status === "delivered" ? "delivered" : statusOf(deliveries);
    const isUnchanged = row.status === "delivered" && attempt?.error !== null;
    const isDelivered = status === "delivered" && row.status !== "delivered" && deliveries.length > 0;
    const changed: EventRow = {
      ...row,
      status,
      attempts: row.attempts + (attempt === null ? 0 : 1),
      response_status: attempt === null || isUnchanged ? row.response_status : attempt.response_status,
      error: errorOf(status, deliveries, attempt?.error ?? row.error),
      delivered_at: isDelivered ? tx.now : row.delivered_at,
      retry_at: status === "pending" ? nextRetry(row.retry_at, retryAt, tx.now) : null,
    };
    this.deps.events.setAttempt(tx, changed);
    if (status === row.status) this.deps.changes.inProject(tx, bucket.project_ref, "catch", bucket.id);
    else this.buckets.count(tx, bucket, row.status, status);
    const hasFailed = status === "failed" && row.status === "pending";
    if (hasFailed && deliveries.some((delivery) => delivery.status === "failed"))
      this.failures.notify(tx, bucket, changed);
  }
}

/**
 * The status of an event, by the newest delivery to each endpoint: pending while one of them is, and failed if one has failed.
 * A delivery that was cancelled counts as failed only if nothing was delivered.
 */
function statusOf(deliveries: readonly EndpointDelivery[]): EventStatus {
  const latest = new Map(deliveries.map((delivery) => [delivery.endpoint_id, delivery]));
  const delivered = new Set(
    deliveries.filter(({ status }) => status === "delivered").map(({ endpoint_id }) => endpoint_id),
  );
  const others = [...latest.values()].filter(({ endpoint_id }) => !delivered.has(endpoint_id));
  if (others.some(({ finished_at }) => finished_at === null)) return "pending";
  if (others.some(({ status }) => status === "failed")) return "failed";
  return delivered.size > 0 || latest.size === 0 ? "delivered" : "failed";
}

function errorOf(
  status: EventStatus,
  deliveries: readonly EndpointDelivery[],
  last: string | null,
): string | null {
  if (status === "delivered") return null;
  if (status === "pending") return last;
  return deliveries.findLast((delivery) => delivery.status === "failed")?.error ?? "cancelled";
}

/** The earliest known time of a retry; {@link QUEUED} if there is none. */
function nextRetry(before: number | null, next: number | null, now: number): number {
  if (next === null) return before ?? QUEUED;
  return before !== null && before > now ? Math.min(before, next) : next;
}

/**
 * The sender's headers of Standard Webhooks under names of their own. The endpoint's secret must not sign an id that a sender has
 * chosen: receivers take a signed id that is not an event's for that of a message.
 */
function senderHeaders(headers: ReturnType<typeof standardHeadersOf>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [`x-svc-sender-${name}`, value]),
  );
}

/** The body, parsed on first use; undefined if it is not JSON, or has too many levels or values. */
function parsedOnce(body: Uint8Array, content: ContentHeaders): () => unknown {
  let parsed: { value: unknown } | undefined;
  return () => {
    if (parsed === undefined) {
      const text = contentText(body, content);
      parsed = { value: text === null || isTooLarge(text) ? undefined : parse(text) };
    }
    return parsed.value;
  };
}

/** The same for a large body, or one with a coding: read before the filters, in slices of its own. */
async function parsedInSlices(body: Uint8Array, content: ContentHeaders): Promise<() => unknown> {
  const text = contentText(body, content);
  await slices.next();
  const isRejected = text === null || isTooLarge(text);
  await slices.next();
  const value = isRejected ? undefined : parse(text);
  await slices.next();
  return () => value;
}

/** Whether a text has more levels or values than are searched. */
function isTooLarge(text: string): boolean {
  return findExcess(text, JSON_LEVELS_MAX) !== null;
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
