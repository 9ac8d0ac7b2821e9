/** What looks at a signal, and the one listener on it for all of them: past ten of them Node warns of a leak. */
interface Watch {
  readonly calls: Set<() => void>;
  readonly listener: () => void;
}

const WATCHES = new WeakMap<AbortSignal, Watch>();

/** Calls back when a signal is aborted; not for one that is aborted already. Returns how to stop that. */
export function onAbort(signal: AbortSignal | undefined, callBack: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => {};
  const watch = WATCHES.get(signal) ?? startWatch(signal);
  watch.calls.add(callBack);
  return () => {
    watch.calls.delete(callBack);
    // A listener that stays would keep signals made of others in memory.
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
