import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Notifications } from "../channels/notifications.ts";
import { clockText, durationText, type MonitorEvent, type MonitorState } from "../domain.ts";
import type { CompletedCheck, MonitorRow } from "../store.ts";
import type { Incidents } from "./lifecycle.ts";
import type { IncidentRow } from "./store.ts";

/** A check that changes the status of a monitor or repeats an alert. */
export interface CheckOutcome {
  readonly before: MonitorRow;
  readonly after: MonitorState;
  readonly made: CompletedCheck;
  /** Event for the monitor's own webhook; the first of an outage, and recovery, also for its e-mail alert. Null for none. */
  readonly event: MonitorEvent | null;
  /** Incident, else monitor, that explains the failure: no alert is sent. */
  readonly suppressedBy?: string | null;
  /** Whether channels are not notified. */
  readonly isSilenced?: boolean;
}

/** A notification about a monitor whose status has not changed. */
export interface HealthNotification {
  readonly event: "monitor.degraded" | "monitor.recovered" | "monitor.certificate";
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Opens and resolves the incident of a monitor after its checks, and notifies channels. */
export class Outages {
  constructor(
    private readonly incidents: Incidents,
    private readonly notifications: Notifications,
  ) {}

  /** Whether the project has notification channels. */
  hasChannels(projectRef: number): boolean {
    return this.notifications.hasChannels(projectRef);
  }

  /** Resolves the monitor's open incident, if any, without a notification. */
  resolveIncident(tx: Tx, monitorRef: number): void {
    this.incidents.resolve(tx, monitorRef, tx.now);
  }

  /**
   * Opens or resolves the incident, and notifies the channels and by e-mail. Returns the event that remains to be sent to
   * the monitor's own webhook, or null.
   */
  recordOutcome(tx: Tx, outcome: CheckOutcome): MonitorEvent | null {
    const { before, after, made, event } = outcome;
    const incident = this.updateIncident(tx, outcome);
    if (made.manual || isAccountedFor(outcome, incident)) return null;
    // A channel chooses recoveries by its events: `notify_recovery` concerns the webhook and the e-mail only.
    const isRecovery = before.status === "down" && after.status === "up";
    const channelEvent = event ?? (isRecovery ? "monitor.up" : null);
    // The cooldown repeats the webhook only: channels have their own reminders.
    if (channelEvent !== null && !isRepeated(outcome)) this.notify(tx, outcome, channelEvent, incident);
    return event;
  }

  /** Notifies channels of a slow target, its return to normal latency, and an expiring certificate. */
  notifyHealth(tx: Tx, monitor: MonitorRow, notices: readonly HealthNotification[]): void {
    const { projectRef } = monitor;
    if (!this.hasChannels(projectRef)) return;
    for (const notice of notices) this.notifications.notifyChannels(tx, { projectRef, monitor, ...notice });
  }

  private updateIncident(tx: Tx, outcome: CheckOutcome): IncidentRow | null {
    const { before, after, made, event, suppressedBy = null } = outcome;
    const { at, error: cause } = made;
    if (after.status === "down") {
      const incident = this.incidents.open(tx, before, { at, cause, suppressedBy });
      // An alert without a suppressor: what explained the incident has recovered, and this target has not.
      return event === null || suppressedBy !== null ? incident : this.incidents.unsuppress(tx, incident);
    }
    return before.status === "down" ? this.incidents.resolve(tx, before.ref, at) : null;
  }

  private notify(tx: Tx, outcome: CheckOutcome, event: MonitorEvent, incident: IncidentRow | null): void {
    const { before, after, made, isSilenced = false } = outcome;
    const { projectRef } = before;
    this.notifications.notifyChannels(tx, {
      projectRef,
      monitor: before,
      event,
      incidentId: incident?.id ?? null,
      text: event === "monitor.down" ? downText(made.error, incident, tx.now) : upText(made, incident),
      detail: made.pingBody ? `Last ping: ${printable(made.pingBody)}` : null,
      toChannels: !isSilenced,
      toAccount: before.settings.email_alert && outcome.event !== null,
      facts: {
        status: after.status,
        previous_status: before.status,
        error: made.error,
        response_status: made.responseStatus,
        latency_ms: made.latencyMs,
        consecutive_failures: after.consecutiveFailures,
        checked_at: Math.floor(made.at / 1_000),
        ...(made.pingBody ? { last_ping_body: made.pingBody } : {}),
      },
    });
  }
}

/** Whether the event repeats the alert of an outage. */
function isRepeated({ before, event }: CheckOutcome): boolean {
  return event === "monitor.down" && before.status === "down" && before.alertedAt !== null;
}

/** Whether the incident is suppressed, or the alert would repeat an acknowledged one. */
function isAccountedFor({ event }: CheckOutcome, incident: IncidentRow | null): boolean {
  if (incident === null) return false;
  return incident.suppressedBy !== null || (event === "monitor.down" && incident.acknowledgedAt !== null);
}

/** A text of a client without control characters, except line breaks and tabs. */
function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, "").trimEnd();
}

/** The cause of an outage, and since when it lasts. */
export function downText(error: string | null, incident: IncidentRow | null, now: number): string {
  const cause = error ?? "no response";
  if (incident === null) return cause;
  const since = `since ${clockText(incident.startedAt, now)}`;
  // Causes that are sentences are those of heartbeats.
  return cause.endsWith(".") ? `${cause} Down ${since}.` : `${cause} · ${since}`;
}

function upText({ at, responseStatus, latencyMs }: CompletedCheck, incident: IncidentRow | null): string {
  const parts: string[] = [];
  if (responseStatus !== null) parts.push(`responded with ${responseStatus} in ${latencyMs} ms`);
  if (incident !== null) parts.push(`was down for ${durationText(at - incident.startedAt)}`);
  return parts.length === 0 ? "up again" : parts.join(" · ");
}
