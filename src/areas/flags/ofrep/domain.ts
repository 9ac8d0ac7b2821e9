/** Streams of one key: every tab of every visitor who has it. */
export const STREAMS_PER_KEY_MAX = 1_000;
/** Streams of the server: 200 MB. */
export const STREAMS_MAX = 10_000;
/** When somebody who found no room may come back. */
export const ROOM_AFTER_SECONDS = 30;
/** How often a comment goes out: proxies close what has been silent for 30 s or more. */
export const PING_MS = 25_000;
/** Changes of this time make one event. */
export const EVENT_AFTER_MS = 100;
/** What a client waits before it comes back, at random, so that not all come at once. */
export const RETRY_MS_MIN = 2_000;
/** The longest such wait. */
export const RETRY_MS_MAX = 6_000;
/** Seconds without a look at the page after which its stream may be closed. */
export const INACTIVITY_SECONDS = 120;

/** Listeners who may hear of a change at the same moment: each of them asks for all flags then. */
export const AT_ONCE_MAX = 500;
/** More listeners hear of it over so much time for each thousand of them. */
const SPREAD_MS_PER_THOUSAND = 1_000;
/** The longest such time: with what an event waits for and what it takes, all have heard within 5 s. */
const SPREAD_MS_MAX = 4_500;

/** How many of so many listeners hear of a change in one step of {@link EVENT_AFTER_MS}. */
export function toldPerStep(listeners: number): number {
  if (listeners <= AT_ONCE_MAX) return AT_ONCE_MAX;
  const spreadMs = Math.min(SPREAD_MS_MAX, (listeners * SPREAD_MS_PER_THOUSAND) / 1_000);
  return Math.ceil((listeners * EVENT_AFTER_MS) / spreadMs);
}

/** The event that tells a client to evaluate its flags anew. */
export function refetchEvent(version: number, now: number): string {
  const data = JSON.stringify({ type: "refetchEvaluation", lastModified: Math.floor(now / 1000) });
  return `id: ${version}\nevent: message\ndata: ${data}\n\n`;
}

/**
 * What a stream begins with. The id makes no event; a client that has had none yet comes back with it. `fraction`: at
 * random, of the time that a client waits before it does.
 */
export function beginning(version: number, fraction: number): string {
  const retryMs = RETRY_MS_MIN + Math.floor(fraction * (RETRY_MS_MAX - RETRY_MS_MIN + 1));
  return `retry: ${retryMs}\nid: ${version}\n: ok\n\n`;
}

const EVENT_ID = /^\d{1,15}$/;

/** The version in a `Last-Event-ID`; null where there is none. */
export function eventVersion(text: string | null | undefined): number | null {
  return typeof text === "string" && EVENT_ID.test(text) ? Number(text) : null;
}
