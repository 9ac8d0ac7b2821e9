import type { Notifier } from "../../../kernel/outbound/notification.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { CheckEffects, CheckOutcome } from "../alerting.ts";
import type { Notifications } from "../channels/notifications.ts";
import { clockText, durationText, type MonitorEvent, secondsOf, shownName } from "../domain.ts";
import type { CompletedCheck } from "../store.ts";
import type { Incidents } from "./lifecycle.ts";
import type { IncidentRow } from "./store.ts";

/** Opens and resolves the incident of a monitor after its checks, and notifies channels. */
export class Outages {
  constructor(
    private readonly notifier: Pick<Notifier, "notify">,
    private readonly incidents: Incidents,
    private readonly notifications: Notifications,
  ) {}

  /** Opens or resolves the incident of a monitor, and sends its alerts and notifications. */
  carryOut(tx: Tx, { monitor, outcome, health }: CheckEffects): void {
    if (outcome !== null) this.recordOutcome(tx, outcome);
    const { projectRef } = monitor;
    if (!this.notifications.hasChannels(projectRef)) return;
    for (const each of health) this.notifications.notifyChannels(tx, { projectRef, monitor, ...each });
  }

  private recordOutcome(tx: Tx, outcome: CheckOutcome): void {
    const { before, after, check, event } = outcome;
    const incident = this.updateIncident(tx, outcome);
    if (check.manual || isAccountedFor(outcome, incident)) return;
    // A channel chooses recoveries by its events: `notify_recovery` concerns the webhook and the e-mail only.
    const isRecovery = before.status === "down" && after.status === "up";
    const channelEvent = event ?? (isRecovery ? "monitor.up" : null);
    // The cooldown repeats the webhook only: channels have their own reminders.
    if (channelEvent !== null && !isRepeated(outcome)) this.notify(tx, outcome, channelEvent, incident);
    if (event !== null) this.notifyWebhook(tx, outcome, event);
  }

  private updateIncident(tx: Tx, outcome: CheckOutcome): IncidentRow | null {
    const { before, after, check, event, suppressedBy = null } = outcome;
    const { at, error: cause } = check;
    if (after.status === "down") {
      const incident = this.incidents.open(tx, before, { at, cause, suppressedBy });
      // An alert without a suppressor: what explained the incident has recovered, and this target has not.
      return event === null || suppressedBy !== null ? incident : this.incidents.unsuppress(tx, incident);
    }
    return before.status === "down" ? this.incidents.resolve(tx, before.ref, at) : null;
  }

  private notify(tx: Tx, outcome: CheckOutcome, event: MonitorEvent, incident: IncidentRow | null): void {
    const { before, after, check, isSilenced = false } = outcome;
    const { projectRef } = before;
    this.notifications.notifyChannels(tx, {
      projectRef,
      monitor: before,
      event,
      incidentId: incident?.id ?? null,
      text: event === "monitor.down" ? downText(check.error, incident, tx.now) : upText(check, incident),
      detail: check.pingBody ? `Last ping: ${printable(check.pingBody)}` : null,
      toChannels: !isSilenced,
      toAccount: before.settings.email_alert && outcome.event !== null,
      facts: {
        status: after.status,
        previous_status: before.status,
        error: check.error,
        response_status: check.responseStatus,
        latency_ms: check.latencyMs,
        consecutive_failures: after.consecutiveFailures,
        checked_at: secondsOf(check.at),
        ...(check.pingBody ? { last_ping_body: check.pingBody } : {}),
      },
    });
  }

  /** Queues the alert of the monitor's own webhook. */
  private notifyWebhook(tx: Tx, { before: monitor, after, check }: CheckOutcome, event: MonitorEvent): void {
    const { accountRef, projectRef, monitorId: monitor_id, settings } = monitor;
    const { url, webhook_url: target_url } = settings;
    if (target_url === null) return;
    const body = JSON.stringify({
      event,
      monitor_id,
      name: shownName(settings),
      url,
      status: after.status,
      previous_status: monitor.status,
      error: check.error,
      response_status: check.responseStatus,
      latency_ms: check.latencyMs,
      consecutive_failures: after.consecutiveFailures,
      checked_at: secondsOf(check.at),
      timestamp: secondsOf(tx.now),
    });
    this.notifier.notify(tx, { accountRef, projectRef, event, body, monitor_id, target_url });
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
