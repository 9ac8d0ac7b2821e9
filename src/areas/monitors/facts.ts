import { shownName } from "./domain.ts";
import type { MonitorRow } from "./store.ts";
import { checksTarget } from "./types.ts";

/** What other areas know of a monitor. */
export type MonitorFacts = ReturnType<typeof factsOf>;

/** A monitor as other areas see it. */
export function factsOf(monitor: MonitorRow) {
  const { settings, ref, monitorId, accountRef, projectRef } = monitor;
  return {
    ref,
    monitorId,
    accountRef,
    projectRef,
    /** Its name, else the host of its target, else `Heartbeat`. Read when it is shown: it may have to parse the URL. */
    get name(): string {
      return shownName(settings);
    },
    isNamed: settings.name !== null,
    type: settings.type,
    url: settings.url,
    hasTarget: checksTarget(settings.type),
    isActive: settings.active,
    webhookUrl: settings.webhook_url,
    emailAlert: settings.email_alert,
    /** Time that it must be down before anyone is notified, milliseconds. */
    notifyAfterMs: settings.notify_after_ms,
    status: monitor.status,
    degraded: monitor.degraded,
    overdue: monitor.overdue,
    /** Milliseconds. */
    latencyMs: monitor.latencyMs,
    /** Epoch milliseconds; null before the first check. */
    lastCheckedAt: monitor.lastCheckedAt,
    consecutiveFailures: monitor.consecutiveFailures,
    /** When the last alert of the current outage was sent, epoch milliseconds; null without one. */
    alertedAt: monitor.alertedAt,
  };
}
