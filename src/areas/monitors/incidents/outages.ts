import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Notices } from "../alerts/notifications.ts";
import { healthNotices } from "../checks/health.ts";
import { durationText, type MonitorEvent, type MonitorState, sinceText } from "../domain.ts";
import type { CheckMade, MonitorRow } from "../store.ts";
import type { Incidents } from "./incidents.ts";
import type { IncidentRow } from "./store.ts";

/** A check that changes the status of a monitor, or is to be told. */
export interface Turn {
  readonly before: MonitorRow;
  readonly after: MonitorState;
  readonly made: CheckMade;
  /** What its webhook and its e-mail are to be told; null: nothing. */
  readonly event: MonitorEvent | null;
  /** The incident, else the monitor, that accounts for it: then nobody is told. */
  readonly suppressedBy?: string | null;
  /** Channels are told nothing of it, and know why. */
  readonly isHushed?: boolean;
}

/** What follows from a check beside the monitor's new state: its incident, and what channels are told. */
export class Outages {
  constructor(
    private readonly incidents: Incidents,
    private readonly notices: Notices,
  ) {}

  /** Whether anybody could be told beside webhook and e-mail. */
  hasChannels(projectRef: number): boolean {
    return this.notices.hasChannels(projectRef);
  }

  /** Ends the incident of a monitor, if one is open, and notifies nobody. */
  endIncident(tx: Tx, monitorRef: number): void {
    this.incidents.end(tx, monitorRef, tx.now);
  }

  /** Opens or ends the incident, and tells the channels. Returns what is left to tell the monitor's own webhook and e-mail. */
  follow(tx: Tx, turn: Turn): MonitorEvent | null {
    const { before, after, made, event } = turn;
    const incident = this.incidentOf(tx, turn);
    const isKnown = incident !== null && (incident.suppressedBy !== null || isRepeated(turn, incident));
    if (made.manual || isKnown) return null;
    const isBack = before.status === "down" && after.status === "up";
    const told = event ?? (isBack ? "monitor.up" : null);
    if (told !== null && turn.isHushed !== true) this.tell(tx, turn, told, incident);
    return event;
  }

  /** Tells the channels what is to be told of a monitor beside down and up. */
  tellHealth(tx: Tx, before: MonitorRow, after: MonitorRow, made: CheckMade): void {
    const { projectRef } = before;
    if (!this.hasChannels(projectRef)) return;
    for (const notice of healthNotices(before, after, made)) {
      this.notices.tell(tx, { projectRef, monitor: after, ...notice });
    }
  }

  private incidentOf(tx: Tx, turn: Turn): IncidentRow | null {
    const { before, after, made, event, suppressedBy = null } = turn;
    const { at, error: cause } = made;
    if (after.status === "down") {
      const incident = this.incidents.begin(tx, before, { at, cause, suppressedBy });
      // What accounted for it is well, and this is not.
      return event === null || suppressedBy !== null ? incident : this.incidents.tellOf(tx, incident);
    }
    return before.status === "down" ? this.incidents.end(tx, before.ref, at) : null;
  }

  private tell(tx: Tx, turn: Turn, event: MonitorEvent, incident: IncidentRow | null): void {
    const { before, after, made } = turn;
    const { at, latencyMs: latency_ms, responseStatus: response_status, error } = made;
    const { projectRef } = before;
    if (!this.hasChannels(projectRef)) return;
    const checked_at = Math.floor(at / 1_000);
    this.notices.tell(tx, {
      projectRef,
      monitor: before,
      event,
      incidentId: incident?.incidentId ?? null,
      text: event === "monitor.down" ? downText(made, incident, tx.now) : upText(made, incident),
      facts: {
        status: after.status,
        previous_status: before.status,
        error,
        response_status,
        latency_ms,
        consecutive_failures: after.consecutiveFailures,
        checked_at,
      },
    });
  }
}

/** Whether people know already of what would be told once more. */
function isRepeated({ event }: Turn, { acknowledgedAt }: IncidentRow): boolean {
  return event === "monitor.down" && acknowledgedAt !== null;
}

function downText({ error }: CheckMade, incident: IncidentRow | null, now: number): string {
  const parts = [error ?? "no answer", ...(incident === null ? [] : [sinceText(incident.startedAt, now)])];
  return parts.join(" · ");
}

function upText({ at, responseStatus, latencyMs }: CheckMade, incident: IncidentRow | null): string {
  const answered = responseStatus === null ? [] : [`answered ${responseStatus} in ${latencyMs} ms`];
  const lasted = incident === null ? [] : [`was down for ${durationText(at - incident.startedAt)}`];
  const parts = [...answered, ...lasted];
  return parts.length === 0 ? "up again" : parts.join(" · ");
}
