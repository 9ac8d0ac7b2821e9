/** All listeners of a signal, behind a single one on the signal itself: above ten listeners Node warns of a leak. */
interface Watch {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

const WATCHES = new WeakMap<AbortSignal, Watch>();

/**
 * Calls back when a signal is aborted, but not for one that already is. Returns a function that removes the
 * callback.
 */
export function onAbort(signal: AbortSignal | undefined, callBack: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => {};
  const watch = WATCHES.get(signal) ?? startWatch(signal);
  watch.calls.add(callBack);
  return () => {
    watch.calls.delete(callBack);
    // A remaining listener would keep derived signals in memory.
    if (watch.calls.size > 0 || WATCHES.get(signal) !== watch) return;
    signal.removeEventListener("abort", watch.listener);
    WATCHES.delete(signal);
  };
}

function startWatch(signal: AbortSignal): Watch {
  const calls = new Set<() => void>();
  const listener = (): void => {
    for (const call of [...calls]) call();
  };
  const watch = { calls, listener };
  WATCHES.set(signal, watch);
  signal.addEventListener("abort", listener, { once: true });
  return watch;
}

/** Longest wait before the first retry. */
const BACKOFF_MS_FIRST = 500;
/** Longest wait that the client chooses itself. */
const BACKOFF_MS_MAX = 8_000;
/** Longest `Retry-After` that the client waits for. With a longer one the request fails instead. */
export const RETRY_AFTER_MS_MAX = 30_000;

/**
 * Milliseconds before a retry (0 is the first). The wait doubles each time and half of it is random, so that clients
 * that failed together do not retry together. A longer `Retry-After` replaces it; null when that is too long.
 */
export function backoffMs(retry: number, retryAfterMs: number | null, random: () => number): number | null {
  if (retryAfterMs !== null && retryAfterMs > RETRY_AFTER_MS_MAX) return null;
  const most = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_FIRST * 2 ** retry);
  const jitter = most * random();
  return retryAfterMs === null
    ? (most + jitter) / 2
    : Math.max(retryAfterMs + jitter / 2, (most + jitter) / 2);
}

/** Waits. Rejects with the signal's reason as soon as the signal is aborted. */
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
