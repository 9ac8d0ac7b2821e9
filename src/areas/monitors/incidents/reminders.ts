import type { Tx } from "../../../kernel/storage/tx.ts";
import { type Notifications, REMIND_MS, REMINDER, reminderKey } from "../channels/notifications.ts";
import type { ChannelStore } from "../channels/store.ts";
import { secondsOf } from "../domain.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import { downText } from "./outages.ts";
import type { IncidentStore } from "./store.ts";

/** What postpones or replaces a reminder. */
interface Silence {
  /** Until when notifications about a monitor must wait, epoch milliseconds; null: they need not. */
  suppressedUntil(monitorRef: number, now: number): number | null;
  isFlapping(monitor: MonitorRow): boolean;
}

/** Reminders in one commit. */
const CONCURRENCY = 64;

/** Reminds channels of targets that stay down. */
export class Reminders {
  constructor(
    private readonly parts: Pick<MonitorParts, "monitors" | "checks" | "scheduler" | "stopped"> & {
      readonly channels: ChannelStore;
      readonly incidents: IncidentStore;
    },
    private readonly notifications: Notifications,
    private readonly suppression: Silence,
  ) {
    parts.scheduler.register(REMINDER, {
      concurrency: CONCURRENCY,
      run: async ({ key }) => {
        const [monitorRef = 0, channelRef = 0] = key.split("/").map(Number);
        return { record: (tx) => this.remind(tx, monitorRef, channelRef) };
      },
    });
  }

  /** Repeats an alert, which schedules the next reminder. Nothing is repeated of an outage that is over or acknowledged. */
  private remind(tx: Tx, monitorRef: number, channelRef: number): void {
    const { monitors, incidents, channels, checks, scheduler, stopped } = this.parts;
    const monitor = monitors.monitor(monitorRef);
    const channel = channels.withRef(channelRef);
    const incident = incidents.openOf(monitorRef);
    if (monitor === null || channel === null || incident === null) return;
    const intervalMs = REMIND_MS[channel.remind];
    if (intervalMs === null || !monitor.settings.active || monitor.status !== "down") return;
    if (stopped.has(monitor.projectRef) || incident.acknowledgedAt !== null) return;
    // Both end with an alert of their own.
    if (incident.suppressedBy !== null || this.suppression.isFlapping(monitor)) return;
    const isSuspended = scheduler.suspended.has(channel.accountRef);
    const postponedTo = isSuspended
      ? tx.now + intervalMs
      : this.suppression.suppressedUntil(monitorRef, tx.now);
    if (postponedTo !== null) {
      scheduler.enqueue(tx, REMINDER, reminderKey(monitorRef, channelRef), postponedTo, null);
      return;
    }
    const last = checks.check(monitor.lastCheck);
    this.notifications.notifyChannels(tx, {
      projectRef: monitor.projectRef,
      monitor,
      event: "monitor.down",
      onlyTo: channelRef,
      incidentId: incident.id,
      text: downText(incident.cause, incident, tx.now),
      facts: {
        status: monitor.status,
        previous_status: monitor.status,
        error: last?.error ?? incident.cause,
        response_status: last?.responseStatus ?? null,
        latency_ms: monitor.latencyMs,
        consecutive_failures: monitor.consecutiveFailures,
        checked_at: monitor.lastCheckedAt && secondsOf(monitor.lastCheckedAt),
        reminder: true,
      },
    });
  }
}
