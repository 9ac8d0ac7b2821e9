import { headerError } from "../../../kernel/outbound/headers.ts";
import { HOPS_HEADER } from "../../../kernel/outbound/hops.ts";
import type { BucketActor } from "../buckets/buckets.ts";
import type { Provider } from "../domain.ts";
import type { EventHeaders } from "../event-headers.ts";
import { isProviderHeader, PRESETS } from "../providers/presets.ts";

/** The headers that identify and sign a request by Standard Webhooks. */
const STANDARD_HEADERS = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

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
export function standardHeadersOf(
  received: EventHeaders,
): Record<(typeof STANDARD_HEADERS)[number], string> | null {
  const isSent = STANDARD_HEADERS.every(
    (name) => received[name] && headerError(name, received[name]) === null,
  );
  return isSent
    ? (Object.fromEntries(STANDARD_HEADERS.map((name) => [name, received[name] ?? ""])) as never)
    : null;
}
