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
