import { isoTime } from "../../kernel/time/date-time.ts";
import type { CheckChanges, IncidentMonitor, Period } from "./ports.ts";
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

type Alert = NonNullable<Incident["alerts"]>[number];
type Check = NonNullable<Incident["checks"]>[number];

/** Alerts and checks of the affected monitors from shortly before an incident until its resolution, oldest first. */
export function timelineOf(
  deps: { readonly checkChanges: CheckChanges; readonly incidents: IncidentStore },
  incident: IncidentRow,
  monitors: readonly IncidentMonitor[],
): { readonly alerts: Alert[]; readonly checks: Check[] } {
  const period = { from: incident.startedAt - LEAD_MS, until: incident.resolvedAt };
  return {
    alerts: alertsOf(deps.incidents, incident, monitors, period),
    checks: deps
      .checkChanges(monitors, period, CHECKS_MAX)
      .map(({ at, monitorId: monitor_id, status, latencyMs: latency_ms, responseStatus, error }) => ({
        at: isoTime(at),
        monitor_id,
        status,
        latency_ms,
        response_status: responseStatus,
        error,
      })),
  };
}

/** Alerts of the incident itself, and of those that its monitors opened meanwhile. */
function alertsOf(
  incidents: IncidentStore,
  incident: IncidentRow,
  monitors: readonly IncidentMonitor[],
  { from, until }: Period,
): Alert[] {
  const isManual = incident.monitorRef === null;
  const itself = { ref: incident.ref, monitorId: isManual ? null : incident.monitorIds[0] };
  const others = (isManual ? monitors : [])
    .flatMap(({ monitorId }) => incidents.near(monitorId, incident.ref).map((ref) => ({ ref, monitorId })))
    .slice(0, RELATED_MAX)
    .filter(({ ref }) => {
      const found = incidents.withRef(ref);
      if (found === null || found.monitorRef === null) return false;
      return found.startedAt <= (until ?? found.startedAt) && (found.resolvedAt ?? from) >= from;
    });
  return [itself, ...others]
    .flatMap(({ ref, monitorId = null }) => {
      // Channels that hold or collect alerts get its own after its end.
      const isOwn = ref === incident.ref;
      const sent = incidents.alerts(ref, isOwn ? ALERTS_MAX : RELATED_ALERTS_MAX);
      return sent.map((alert) => ({ ...alert, monitor_id: monitorId, isOwn }));
    })
    .filter(({ at, isOwn }) => at >= from && (isOwn || at <= (until ?? at)))
    .sort((a, b) => a.at - b.at)
    .slice(-ALERTS_MAX)
    .map(({ at, channels, isOwn: _, ...alert }) => ({ at: isoTime(at), ...alert, channels: [...channels] }));
}
