import { ApiError } from "../../../kernel/errors.ts";
import type { Attempt } from "../../../kernel/outbound/delivery.ts";
import { headerError } from "../../../kernel/outbound/headers.ts";
import { HOPS_HEADER } from "../../../kernel/outbound/hops.ts";
import { errorOf } from "../../../kernel/outbound/retries.ts";
import type { BucketActor } from "../buckets/buckets.ts";
import { isDelivered, type Provider, RESPONSE_BYTES_STORED_MAX } from "../domain.ts";
import type { EventHeaders } from "../event-headers.ts";
import { isProviderHeader, PRESETS } from "../providers/presets.ts";
import type { AttemptRow } from "../store.ts";

/** Headers without which the bytes of a body cannot be read. */
const CONTENT_HEADERS: ReadonlySet<string> = new Set(["content-type", "content-encoding"]);

/** The type and coding of the content and the provider's headers, if they can be sent: the sender is not trusted. */
export function originalHeaders(
  bucket: BucketActor,
  provider: Provider | null,
  received: EventHeaders,
): Record<string, string> {
  const preset = bucket.settings.preset ?? (provider === null ? null : PRESETS[provider]);
  return Object.fromEntries(
    Object.entries(received).filter(
      ([name, value]) =>
        name !== HOPS_HEADER.toLowerCase() &&
        (CONTENT_HEADERS.has(name) || (preset !== null && isProviderHeader(preset, name))) &&
        headerError(name, value) === null,
    ),
  );
}

/** The sender's own headers of Standard Webhooks; null unless it sent all of them, and they can be forwarded. */
export function standardHeadersOf(received: EventHeaders) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature } = received;
  if (!id || !timestamp || !signature) return null;
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
  const canBeSent = Object.entries(headers).every(([name, value]) => headerError(name, value) === null);
  return canBeSent ? headers : null;
}

/** An attempt as it is stored. */
export function attemptOf(kind: AttemptRow["kind"], { at, outcome, result }: Attempt): AttemptRow {
  return {
    at,
    kind,
    duration_ms: outcome.latencyMs,
    response_status: result.status,
    error: isDelivered(result.status) ? null : errorOf(result),
    response_body: outcome.answered ? startOf(outcome.body) : null,
  };
}

/** The start of a body as text, without a character that the cut splits. */
export function startOf(body: Uint8Array): string {
  const stream = body.length > RESPONSE_BYTES_STORED_MAX;
  return new TextDecoder().decode(body.subarray(0, RESPONSE_BYTES_STORED_MAX), { stream });
}

/** The header with which each delivery of an event names it. */
const EVENT_HEADER = "X-Svc-Event-Id";

/**
 * Rejects a replay that is requested by the delivery of an event: the replay would be delivered, and request the next one.
 * Nothing counts these, since the event stays the same.
 * @throws ApiError `catch.loop_detected`
 */
export function assertNoLoop(headers: Headers): void {
  if (!headers.has(HOPS_HEADER) || !headers.has(EVENT_HEADER)) return;
  throw new ApiError(
    "catch.loop_detected",
    "The delivery of an event cannot replay events, because that would never end. Replay them from your own program.",
  );
}
