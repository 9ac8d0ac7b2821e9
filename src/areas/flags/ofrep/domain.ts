/** Streams per key: one for every browser tab that uses it. */
export const STREAMS_PER_KEY_MAX = 1_000;
/** Streams of the server, about 200 MB. */
export const STREAMS_MAX = 10_000;
/** Seconds after which a client above the limits may retry. */
export const CAPACITY_RETRY_SECONDS = 30;
/** Interval of comments, in milliseconds. Proxies close connections that are silent for 30 s or more. */
export const PING_MS = 25_000;
/** Changes within this time are combined into one event, in milliseconds. */
export const EVENT_AFTER_MS = 100;
/** Minimum delay before a client reconnects. The delay is random, so that clients do not reconnect together. */
export const RETRY_MS_MIN = 2_000;
/** Maximum delay before a client reconnects. */
export const RETRY_MS_MAX = 6_000;
/** Seconds after which the stream of an inactive page may be closed. */
export const INACTIVITY_SECONDS = 120;

/** Listeners notified of a change at the same time. Each of them then requests all flags. */
export const NOTIFIED_IMMEDIATELY_MAX = 500;
/** For more listeners, the notifications are spread over this time per thousand, in milliseconds. */
const SPREAD_MS_PER_THOUSAND = 1_000;
/** Maximum of this time: all listeners are notified within 5 s. */
const SPREAD_MS_MAX = 4_500;

/** Returns the number of listeners to notify per step of {@link EVENT_AFTER_MS}. */
export function notifiedPerStep(listeners: number): number {
  if (listeners <= NOTIFIED_IMMEDIATELY_MAX) return NOTIFIED_IMMEDIATELY_MAX;
  const spreadMs = Math.min(SPREAD_MS_MAX, (listeners * SPREAD_MS_PER_THOUSAND) / 1_000);
  return Math.ceil((listeners * EVENT_AFTER_MS) / spreadMs);
}

/** Returns the event that makes a client evaluate its flags again. */
export function refetchEvent(version: number, now: number): string {
  const data = JSON.stringify({ type: "refetchEvaluation", lastModified: Math.floor(now / 1000) });
  return `id: ${version}\nevent: message\ndata: ${data}\n\n`;
}

/**
 * Returns the start of a stream. The id triggers no event; a client reconnects with it if it has received no event.
 * `fraction` is random, in [0, 1), and determines the reconnection delay.
 */
export function openingEvent(version: number, fraction: number): string {
  const retryMs = RETRY_MS_MIN + Math.floor(fraction * (RETRY_MS_MAX - RETRY_MS_MIN + 1));
  return `retry: ${retryMs}\nid: ${version}\n: ok\n\n`;
}

const EVENT_ID = /^\d{1,15}$/;

/** Returns the version in a `Last-Event-ID`, or null. */
export function eventVersion(text: string | null | undefined): number | null {
  return typeof text === "string" && EVENT_ID.test(text) ? Number(text) : null;
}
