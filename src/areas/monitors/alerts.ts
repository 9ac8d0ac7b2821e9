import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { CheckResult, MonitorEvent, MonitorState, MonitorStatus } from "./domain.ts";
import type { MonitorOwners, Notifier } from "./ports.ts";
import type { MonitorRow } from "./store.ts";

/** What alerts are sent with. */
export interface AlertDeps {
  readonly notifier: Notifier;
  readonly owners: MonitorOwners;
  readonly outbox: Outbox;
}

/** A change that is to be told. */
export interface Change {
  readonly event: MonitorEvent;
  readonly previous: MonitorStatus;
  readonly state: MonitorState;
  readonly result: CheckResult;
}

/** Queues what is to be told, in the unit of work of the state change: both happen or neither does. */
export function tell(tx: Tx, deps: AlertDeps, monitor: MonitorRow, change: Change): void {
  if (monitor.webhookUrl !== null) {
    deps.notifier.notify(tx, {
      accountRef: monitor.accountRef,
      projectRef: monitor.projectRef,
      event: change.event,
      monitorId: monitor.monitorId,
      targetUrl: monitor.webhookUrl,
      body: JSON.stringify(notification(monitor, change, tx.now)),
    });
  }
  // A mail server that was there when the monitor was set may be gone.
  if (monitor.emailAlert && deps.outbox.available) {
    deps.outbox.enqueue(tx, mail(deps.owners.account(monitor.accountRef).email, monitor, change));
  }
}

function notification(monitor: MonitorRow, change: Change, now: number): object {
  const { event, previous, state, result } = change;
  return {
    event,
    monitor_id: monitor.monitorId,
    url: monitor.url,
    status: state.status,
    previous_status: previous,
    latency_ms: result.latencyMs,
    consecutive_failures: state.consecutiveFailures,
    checked_at: Math.floor(result.at / 1_000),
    timestamp: Math.floor(now / 1_000),
  };
}

function mail(
  to: string,
  monitor: MonitorRow,
  change: Change,
): { to: string; subject: string; text: string } {
  const { event, state, result } = change;
  const isDown = event === "monitor.down";
  const { host } = new URL(monitor.url);
  const failures = `${state.consecutiveFailures} ${state.consecutiveFailures === 1 ? "check" : "checks"}`;
  const text = [
    isDown ? `${monitor.url} is down: ${failures} in a row failed.` : `${monitor.url} is up again.`,
    "",
    `Checked: ${new Date(result.at).toISOString()}`,
    `Latency: ${result.latencyMs} ms`,
    `Monitor: ${monitor.monitorId}`,
  ].join("\n");
  return { to, subject: `${isDown ? "Down" : "Up"}: ${host}`, text };
}
