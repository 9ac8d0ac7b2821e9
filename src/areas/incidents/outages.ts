import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import { downText, printable, upText } from "./domain.ts";
import type { Incidents } from "./lifecycle.ts";
import type { IncidentAlerts, IncidentMonitor } from "./ports.ts";
import type { IncidentRow } from "./store.ts";

/** An alert about the status of a monitor. */
type StatusEvent = Extract<AlertEvent, "monitor.down" | "monitor.up">;

/** A check that changes the status of a monitor or repeats an alert. */
export interface CheckOutcome {
  readonly before: IncidentMonitor;
  readonly after: Pick<IncidentMonitor, "status" | "consecutiveFailures">;
  readonly check: {
    readonly manual: boolean;
    /** Epoch milliseconds. */
    readonly at: number;
    readonly latencyMs: number;
    readonly responseStatus: number | null;
    readonly error: string | null;
    /** Body of the ping that failed, or of the last one before a missed ping. */
    readonly pingBody?: string | null;
    /** What each probe sees, where several check the monitor. */
    readonly probeStates?: readonly ProbeState[];
    /** What became of the packets of an `icmp` check. */
    readonly icmp?: object;
  };
  /** Event for the monitor's own webhook; the first of an outage, and recovery, also for its e-mail alert. Null for none. */
  readonly event: StatusEvent | null;
  /** Incident, else monitor, that explains the failure: no alert is sent. */
  readonly suppressedBy?: string | null;
  /** Whether channels are not notified. */
  readonly isSilenced?: boolean;
}

/** What a check causes beyond the state of its monitor. */
export interface CheckEffects {
  /** The monitor after the check. */
  readonly monitor: IncidentMonitor;
  /** Null: the status is the same, and no alert is due. */
  readonly outcome: CheckOutcome | null;
  /** Notifications about a monitor whose status has not changed. */
  readonly health: readonly {
    readonly event: AlertEvent;
    readonly text: string;
    /** Whether the webhook and the e-mail alert of the monitor itself are notified, too. */
    readonly isAlert?: boolean;
    readonly facts: Readonly<Record<string, unknown>>;
  }[];
}

/** Opens and resolves the incident of a monitor after its checks, and notifies channels. */
export class Outages {
  constructor(
    private readonly incidents: Incidents,
    private readonly alerts: IncidentAlerts,
    private readonly timeZoneOf: (projectRef: number) => string,
  ) {}

  /** Opens or resolves the incident of a monitor, and sends its notifications. */
  carryOut(tx: Tx, { monitor, outcome, health }: CheckEffects): void {
    if (outcome !== null) this.recordOutcome(tx, outcome);
    const { projectRef } = monitor;
    for (const { isAlert = false, ...each } of health) {
      const toAccount = isAlert && monitor.emailAlert;
      if (isAlert || this.alerts.hasChannels(projectRef))
        this.alerts.notifyChannels(tx, { projectRef, monitor, toAccount, toWebhook: isAlert, ...each });
    }
  }

  private recordOutcome(tx: Tx, outcome: CheckOutcome): void {
    const { before, after, check, event } = outcome;
    const incident = this.updateIncident(tx, outcome);
    if (check.manual || isAccountedFor(outcome, incident, tx.now)) return;
    // A channel chooses recoveries by its events: `notify_recovery` concerns the webhook and the e-mail only.
    const isRecovery = before.status === "down" && after.status === "up";
    const channelEvent = event ?? (isRecovery ? "monitor.up" : null);
    if (channelEvent !== null) this.notify(tx, outcome, channelEvent, incident);
  }

  private updateIncident(tx: Tx, outcome: CheckOutcome): IncidentRow | null {
    const { before, after, check, event, suppressedBy = null } = outcome;
    const { at, error: cause, probeStates = [] } = check;
    if (after.status === "down") {
      const incident = this.incidents.open(tx, before, { at, cause, suppressedBy, probeStates });
      // An alert without a suppressor: what explained the incident has recovered, and this target has not.
      return event === null || suppressedBy !== null ? incident : this.incidents.unsuppress(tx, incident);
    }
    return before.status === "down" ? this.incidents.resolve(tx, before.ref, at) : null;
  }

  private notify(tx: Tx, outcome: CheckOutcome, event: StatusEvent, incident: IncidentRow | null): void {
    const { before, after, check, isSilenced = false } = outcome;
    const { projectRef } = before;
    // The cooldown repeats the webhook only: channels have their own reminders.
    const isFirst = !isRepeated(outcome);
    const notification = {
      projectRef,
      monitor: before,
      event,
      incidentId: incident?.id ?? null,
      text:
        event === "monitor.down"
          ? downText(check.error, incident, { now: tx.now, zone: this.timeZoneOf(projectRef) })
          : upText(check, incident),
      detail: check.pingBody ? `Last ping: ${printable(check.pingBody)}` : null,
      toChannels: isFirst && !isSilenced,
      toAccount: isFirst && before.emailAlert && outcome.event !== null,
      toWebhook: outcome.event !== null,
      facts: {
        status: after.status,
        previous_status: before.status,
        error: check.error,
        response_status: check.responseStatus,
        latency_ms: check.latencyMs,
        consecutive_failures: after.consecutiveFailures,
        checked_at: secondsOf(check.at),
        ...(check.probeStates ? { probe_states: check.probeStates } : {}),
        ...(check.icmp ? { icmp: check.icmp } : {}),
        ...(check.pingBody ? { last_ping_body: check.pingBody } : {}),
      },
    };
    if (event === "monitor.up") {
      // Nobody was notified of the outage.
      if (this.alerts.dropDelayed(tx, before.ref)) return;
    } else if (!isFirst) {
      if (this.alerts.isDelayed(before.ref)) return;
    } else {
      const until = (incident?.startedAt ?? tx.now) + before.notifyAfterMs;
      if (until > tx.now) {
        this.alerts.delay(tx, notification, until);
        return;
      }
      this.alerts.dropDelayed(tx, before.ref);
    }
    this.alerts.notifyChannels(tx, notification);
  }
}

/** Whether the event repeats the alert of an outage. */
function isRepeated({ before, event }: CheckOutcome): boolean {
  return event === "monitor.down" && before.status === "down" && before.alertedAt !== null;
}

/** Whether the incident is suppressed, or the alert would repeat one that was acknowledged or snoozed. */
function isAccountedFor({ event }: CheckOutcome, incident: IncidentRow | null, now: number): boolean {
  if (incident === null) return false;
  const isSnoozed = (incident.snoozedUntil ?? 0) > now;
  const isKnown = incident.acknowledgedAt !== null || isSnoozed;
  return incident.suppressedBy !== null || (event === "monitor.down" && isKnown);
}
