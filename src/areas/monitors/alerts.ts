import { isoTime } from "../../kernel/date-time.ts";
import type { MailMessage, Outbox } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { CheckResult, MonitorEvent, MonitorState } from "./domain.ts";
import type { MonitorOwners, Notifier } from "./ports.ts";
import type { TargetStatus } from "./schema.ts";
import type { MonitorRow } from "./store.ts";

/** What alerts are sent with. */
export interface AlertDeps {
  readonly notifier: Notifier;
  readonly owners: MonitorOwners;
  readonly outbox: Outbox;
}

/** A change of state that causes an alert. */
export interface Change {
  readonly event: MonitorEvent;
  readonly previous: TargetStatus;
  readonly state: MonitorState;
  readonly result: CheckResult;
}

/** Queues the alerts of a change, in the unit of work of the change itself: both happen or neither does. */
export function sendAlert(tx: Tx, deps: AlertDeps, monitor: MonitorRow, change: Change): void {
  const { accountRef, projectRef, monitorId, settings } = monitor;
  const { event } = change;
  if (settings.webhook_url !== null) {
    const body = notification(monitor, change, tx.now);
    deps.notifier.notify(tx, {
      ...{ accountRef, projectRef, event, body },
      monitor_id: monitorId,
      target_url: settings.webhook_url,
    });
  }
  // The mail server may have been taken away since the monitor was set up.
  if (settings.email_alert && deps.outbox.available) {
    deps.outbox.enqueue(tx, mail(deps.owners.account(accountRef).email, monitor, change));
  }
}

function notification(monitor: MonitorRow, { event, previous, state, result }: Change, now: number): string {
  return JSON.stringify({
    event,
    monitor_id: monitor.monitorId,
    url: monitor.settings.url,
    status: state.status,
    previous_status: previous,
    latency_ms: result.latencyMs,
    consecutive_failures: state.consecutiveFailures,
    checked_at: Math.floor(result.at / 1_000),
    timestamp: Math.floor(now / 1_000),
  });
}

function mail(to: string, monitor: MonitorRow, { event, state, result }: Change): MailMessage {
  const isDown = event === "monitor.down";
  const { url } = monitor.settings;
  const failures = `${state.consecutiveFailures} ${state.consecutiveFailures === 1 ? "check" : "checks"}`;
  const text = [
    isDown ? `${url} is down: ${failures} in a row failed.` : `${url} is up again.`,
    "",
    `Checked: ${isoTime(result.at)}`,
    `Latency: ${result.latencyMs} ms`,
    `Monitor: ${monitor.monitorId}`,
  ].join("\n");
  return { to, subject: `${isDown ? "Down" : "Up"}: ${new URL(url).host}`, text };
}
