import { onAbort } from "./abort.ts";

/** The wait before the first retry, at most. */
const BACKOFF_MS_FIRST = 500;
/** Longest wait that the client chooses by itself. */
const BACKOFF_MS_MAX = 8_000;
/** Longest `Retry-After` that is waited for; with a longer one the caller is told instead of being held up. */
export const RETRY_AFTER_MS_MAX = 30_000;

/**
 * Milliseconds before a retry (0 is the first): twice as long each time, half of it by chance, so that clients which
 * failed together do not come back together. A server that asks for longer gets it; null when it asks for too much.
 */
export function backoffMs(retry: number, retryAfterMs: number | null, random: () => number): number | null {
  if (retryAfterMs !== null && retryAfterMs > RETRY_AFTER_MS_MAX) return null;
  const most = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_FIRST * 2 ** retry);
  const jitter = most * random();
  return retryAfterMs === null
    ? (most + jitter) / 2
    : Math.max(retryAfterMs + jitter / 2, (most + jitter) / 2);
}

/** Waits. Rejects with the signal's reason as soon as that is aborted. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, ms);
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}
