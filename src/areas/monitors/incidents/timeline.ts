import { isoTime } from "../../../kernel/time/date-time.ts";
import type { MonitorParts } from "../ports.ts";
import type { CheckStore, MonitorRow, StoredCheck } from "../store.ts";
import type { Incident } from "./schema.ts";
import type { IncidentRow, IncidentStore } from "./store.ts";

/** Time before an incident whose checks and alerts are part of its timeline, in milliseconds. */
export const LEAD_MS = 30 * 60 * 1000;
/** Maximum number of checks on a timeline. */
export const CHECKS_MAX = 50;
/** Maximum number of alerts on a timeline. */
export const ALERTS_MAX = 100;
/** Maximum number of other incidents that are searched for alerts: 1 ms. */
const RELATED_MAX = 50;
/** Alerts of each other incident on the timeline: that of the outage and of the recovery come first. */
const RELATED_ALERTS_MAX = 5;
/** Checks that are read for a timeline, of all monitors together: 3 ms. */
export const CHECKS_READ_MAX = 500;
/** Checks of all monitors among which the last one of each is searched: 1 ms. */
const SEARCHED_MAX = 5_000;

type Alert = NonNullable<Incident["alerts"]>[number];
type Check = NonNullable<Incident["checks"]>[number];

interface Period {
  readonly from: number;
  /** Null: it continues. */
  readonly until: number | null;
}

/** Alerts and checks of the affected monitors from shortly before an incident until its resolution, oldest first. */
export function timelineOf(
  parts: Pick<MonitorParts, "checks"> & { readonly incidents: IncidentStore },
  incident: IncidentRow,
  monitors: readonly MonitorRow[],
): { readonly alerts: Alert[]; readonly checks: Check[] } {
  const period = { from: incident.startedAt - LEAD_MS, until: incident.resolvedAt };
  return {
    alerts: alertsOf(parts.incidents, incident, monitors, period),
    checks: checksOf(parts.checks, monitors, period),
  };
}

/** Alerts of the incident itself, and of those that its monitors opened meanwhile. */
function alertsOf(
  incidents: IncidentStore,
  incident: IncidentRow,
  monitors: readonly MonitorRow[],
  { from, until }: Period,
): Alert[] {
  const isManual = incident.monitorRef === null;
  const own = { ref: incident.ref, monitorId: isManual ? null : incident.monitorIds[0] };
  const others = (isManual ? monitors : [])
    .flatMap(({ monitorId }) => incidents.near(monitorId, incident.ref).map((ref) => ({ ref, monitorId })))
    .slice(0, RELATED_MAX)
    .filter(({ ref }) => {
      const found = incidents.withRef(ref);
      if (found === null || found.monitorRef === null) return false;
      return found.startedAt <= (until ?? found.startedAt) && (found.resolvedAt ?? from) >= from;
    });
  return [own, ...others]
    .flatMap(({ ref, monitorId = null }) => {
      const sent = incidents.alerts(ref, ref === incident.ref ? ALERTS_MAX : RELATED_ALERTS_MAX);
      return sent.map((alert) => ({ ...alert, monitor_id: monitorId }));
    })
    .filter(({ at }) => at >= from && at <= (until ?? at))
    .sort((one, other) => one.at - other.at)
    .slice(-ALERTS_MAX)
    .map(({ at, channels, ...alert }) => ({ at: isoTime(at), ...alert, channels: [...channels] }));
}

/** Checks whose result differs from that of the check before them. */
function checksOf(store: CheckStore, monitors: readonly MonitorRow[], { from, until }: Period): Check[] {
  const last = until === null ? null : lastChecks(store, until);
  const readMax = Math.floor(CHECKS_READ_MAX / Math.max(1, monitors.length));
  return monitors
    .flatMap((monitor) => changesOf(store, monitor, { from, readMax, sequence: startOf(monitor, last) }))
    .sort((one, other) => one.at - other.at)
    .slice(-CHECKS_MAX)
    .map(({ at, ...check }) => ({ at: isoTime(at), ...check }));
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

function changesOf(
  store: CheckStore,
  monitor: MonitorRow,
  { from, readMax, sequence }: { readonly from: number; readonly readMax: number; readonly sequence: number },
): (Omit<Check, "at"> & { readonly at: number })[] {
  const changes: ReturnType<typeof changesOf> = [];
  let later: StoredCheck | null = null;
  let next = sequence;
  for (let read = 0; read < readMax; read += 1) {
    const check: StoredCheck | null = next === 0 ? null : store.check(next);
    const isChange =
      later !== null && (check === null || resultOf(later, monitor) !== resultOf(check, monitor));
    if (isChange && later !== null) changes.push(changeOf(later, monitor));
    if (check === null || check.at < from || changes.length === CHECKS_MAX) break;
    // Checks that were ignored change nothing.
    if (check.mark === 0) later = check;
    next = check.previous;
  }
  return changes;
}

function resultOf({ up, latencyMs }: StoredCheck, { settings }: MonitorRow): Check["status"] {
  if (up === 0) return "down";
  return settings.degraded_ms !== null && latencyMs > settings.degraded_ms ? "degraded" : "up";
}

function changeOf(check: StoredCheck, monitor: MonitorRow) {
  const { at, latencyMs: latency_ms, responseStatus: response_status, error } = check;
  const status = resultOf(check, monitor);
  return { at, monitor_id: monitor.monitorId, status, latency_ms, response_status, error };
}
