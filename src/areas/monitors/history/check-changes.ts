import type { CheckStore, MonitorRow, StoredCheck } from "../store.ts";

/** Checks that are read, of all monitors together: 3 ms. */
export const CHECKS_READ_MAX = 500;
/** Checks of all monitors among which the last one of each is searched: 1 ms. */
const SEARCHED_MAX = 5_000;

/** A check whose result differs from that of the check before it. */
export interface CheckChange {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly monitorId: string;
  /** `degraded`: it took longer than `degraded_ms` of the monitor. */
  readonly status: "up" | "degraded" | "down";
  readonly latencyMs: number;
  readonly responseStatus: number | null;
  readonly error: string | null;
}

/** A period, epoch milliseconds. */
export interface Period {
  readonly from: number;
  /** Null: it continues. */
  readonly until: number | null;
}

/** The newest changes of the results of monitors in a period, at most `changesMax`, oldest first. */
export function checkChanges(
  store: CheckStore,
  monitors: readonly MonitorRow[],
  { from, until }: Period,
  changesMax: number,
): CheckChange[] {
  const last = until === null ? null : lastChecks(store, until);
  const readMax = Math.floor(CHECKS_READ_MAX / Math.max(1, monitors.length));
  return monitors
    .flatMap((monitor) =>
      changesOf(store, monitor, { from, readMax, changesMax, sequence: startOf(monitor, last) }),
    )
    .sort((a, b) => a.at - b.at)
    .slice(-changesMax);
}

interface LastChecks {
  readonly upTo: number;
  readonly byMonitor: ReadonlyMap<number, number>;
}

function startOf({ ref, lastCheck }: MonitorRow, last: LastChecks | null): number {
  return last === null || lastCheck <= last.upTo ? lastCheck : (last.byMonitor.get(ref) ?? 0);
}

/**
 * Finds the last checks before a time by bisection: sequences grow with time. A monitor whose last check is further back than
 * the newest {@link SEARCHED_MAX} of all monitors has none.
 */
function lastChecks(store: CheckStore, until: number): LastChecks {
  let [low, high] = [0, store.highestSequence()];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const found = store.lastUpTo(middle);
    if (found === null || found.at <= until) low = middle;
    else high = found.sequence - 1;
  }
  const found = store.lastOfEach(low - SEARCHED_MAX, low);
  return { upTo: low, byMonitor: new Map(found.map(({ ref, sequence }) => [ref, sequence])) };
}

interface Walk {
  readonly from: number;
  readonly readMax: number;
  readonly changesMax: number;
  /** The newest check. */
  readonly sequence: number;
}

function changesOf(
  store: CheckStore,
  monitor: MonitorRow,
  { from, readMax, changesMax, sequence }: Walk,
): CheckChange[] {
  const changes: CheckChange[] = [];
  let later: StoredCheck | null = null;
  let next = sequence;
  for (let read = 0; read < readMax; read += 1) {
    const check: StoredCheck | null = next === 0 ? null : store.check(next);
    const isChange =
      later !== null && (check === null || resultOf(later, monitor) !== resultOf(check, monitor));
    if (isChange && later !== null) changes.push(changeOf(later, monitor));
    if (check === null || check.at < from || changes.length === changesMax) break;
    // Checks that were ignored change nothing.
    if (check.mark === 0) later = check;
    next = check.previous;
  }
  return changes;
}

function resultOf({ up, latencyMs }: StoredCheck, { settings }: MonitorRow): CheckChange["status"] {
  if (up === 0) return "down";
  return settings.degraded_ms !== null && latencyMs > settings.degraded_ms ? "degraded" : "up";
}

function changeOf(check: StoredCheck, monitor: MonitorRow): CheckChange {
  const { at, latencyMs, responseStatus, error } = check;
  const { monitorId } = monitor;
  return { at, monitorId, status: resultOf(check, monitor), latencyMs, responseStatus, error };
}
