import { ApiError } from "../../../kernel/errors.ts";
import type { Attempt } from "../../../kernel/outbound/delivery.ts";
import {
  type Below,
  canHaveBody,
  headerError,
  isOwnHeader,
  type RequestHeaders,
} from "../../../kernel/outbound/headers.ts";
import { HOPS_HEADER } from "../../../kernel/outbound/hops.ts";
import type { PieceBody } from "../../../kernel/outbound/piece-body.ts";
import { errorOf } from "../../../kernel/outbound/retries.ts";
import { SECRET_NAMES } from "../../../kernel/secrets/secret-names.ts";
import type { BucketActor } from "../buckets/buckets.ts";
import { isDelivered, type Provider, RESPONSE_BYTES_STORED_MAX } from "../domain.ts";
import type { EventHeaders } from "../event-headers.ts";
import type { Pieces } from "../large/pieces.ts";
import { storedBody } from "../large/stored-body.ts";
import { isProviderHeader, PRESETS } from "../providers/presets.ts";
import type { Forward } from "../settings-schema.ts";
import type { AttemptRow, EventStore, StoredPayload } from "../store.ts";

/** Headers without which the bytes of a body cannot be read. */
const CONTENT_HEADERS: ReadonlySet<string> = new Set(["content-type", "content-encoding"]);

/** Headers that are about the connection to this server, or that Ninefold sets itself: never forwarded by their names. */
const NEVER_FORWARDED = /^(?:host|accept-encoding|x-svc-.*|webhook-.*)$/;

/** The request that forwards an event, without what the server adds to it. */
export interface ForwardedRequest {
  readonly method: string;
  readonly below: Below | undefined;
  /** Headers of the sender, by lower-case name. */
  readonly headers: RequestHeaders;
  /** Null for a method that has none. */
  readonly body: Uint8Array | PieceBody | null;
}

/** What the request of an event is read from. */
interface BodyDeps {
  readonly events: Pick<EventStore, "way">;
  readonly large: Pick<Pieces, "bodyOf">;
}

/** What is sent of an event: its body with its headers, and what the bucket forwards of the request besides. */
export function forwardedRequest(
  { events, large }: BodyDeps,
  bucket: BucketActor,
  { sequence, provider }: { readonly sequence: number; readonly provider: Provider | null },
  received: EventHeaders,
  payload: StoredPayload,
): ForwardedRequest {
  const body = storedBody(large, payload);
  const { forward } = bucket.settings.stored;
  const headers = originalHeaders(bucket, provider, received);
  if (!forward) return { method: "POST", below: undefined, headers, body };
  const way = events.way(sequence);
  const method = forwardedMethod({ events }, bucket, sequence);
  const sent = { ...headers, ...chosenHeaders(forward, received) };
  const isEmpty = !canHaveBody(method);
  if (isEmpty) for (const name of CONTENT_HEADERS) delete sent[name];
  return {
    method,
    below: {
      path: forward.path === true ? pathBelow(way?.path ?? "") : "",
      query: forward.query === true ? asSent(way?.query ?? "") : "",
    },
    headers: sent,
    body: isEmpty ? null : body,
  };
}

/** The method of requests that forward an event. */
export function forwardedMethod(
  { events }: Pick<BodyDeps, "events">,
  bucket: BucketActor,
  sequence: number,
): string {
  const keepsMethod = bucket.settings.stored.forward?.method === true;
  return (keepsMethod ? events.way(sequence)?.method : undefined) ?? "POST";
}

/** The headers that a bucket forwards by their names, if they can be sent. */
function chosenHeaders({ headers: names = [] }: Forward, received: EventHeaders): RequestHeaders {
  const chosen = names.map((name) => name.toLowerCase());
  const full = new Set(chosen.filter((name) => !name.endsWith("*")));
  const starts = chosen.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return Object.fromEntries(
    Object.entries(received).filter(
      ([name, value]) =>
        name !== HOPS_HEADER.toLowerCase() &&
        !isOwnHeader(name) &&
        !NEVER_FORWARDED.test(name) &&
        (full.has(name) || (!SECRET_NAMES.has(name) && starts.some((start) => name.startsWith(start)))) &&
        headerError(name, value) === null,
    ),
  );
}

/** Segments by which a server could leave the path of the target, also with encoded dots. */
const DOT_SEGMENT = /^(?:\.|%2e){1,2}$/i;

/** The path below that of the bucket, as it was sent; empty if it has a segment that leads out of the target's path. */
function pathBelow(path: string): string {
  return path.split("/").some((segment) => DOT_SEGMENT.test(segment)) ? "" : asSent(path);
}

/** A part of a request's target: what cannot stand in a request line is encoded. */
function asSent(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]|[#\\]/gu, encodeURIComponent);
}

/** The type and coding of the content and the provider's headers, if they can be sent: the sender is not trusted. */
function originalHeaders(
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
