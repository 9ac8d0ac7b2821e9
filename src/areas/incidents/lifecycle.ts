import type { Caller } from "../../kernel/callers/caller.ts";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AuditChange, Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { clockText } from "../../kernel/time/readable.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { authorOf } from "./author.ts";
import { auditSummary, incidentResource, NEW_INCIDENT, summaryOf, viewOf } from "./incidents.ts";
import type { IncidentDeps, IncidentMonitor } from "./ports.ts";
import {
  INCIDENT_UPDATES_MAX,
  type Incident,
  type IncidentSnoozeBody,
  type IncidentUpdateBody,
  SNOOZE_MS,
} from "./schema.ts";
import type { IncidentRow, IncidentStore } from "./store.ts";

/** Time that an incident is stored after it is resolved, in milliseconds. */
export const INCIDENT_RETENTION_MS = 400 * DAY_MS;

/** Time that is known when a message was sent, in milliseconds: longer than an incident that ended before, and was alerted later. */
export const DIGEST_RETENTION_MS = 2 * INCIDENT_RETENTION_MS;

/** Outage found by a check. */
export interface Outage {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly cause: string | null;
  /** Incident, else monitor, that explains the outage; null for none. */
  readonly suppressedBy: string | null;
  /** What each probe saw; empty where only the server checks the monitor. */
  readonly probeStates: readonly ProbeState[];
}

/** An incident after a change, and the audit entry of the change. */
interface ChangedIncident {
  readonly row: IncidentRow;
  readonly change: AuditChange;
}

/** Automatic incidents, which monitors open and resolve, and manual ones. */
export class Incidents {
  readonly resource;

  constructor(
    private readonly deps: Pick<Kernel, "ids" | "changes"> &
      Pick<
        IncidentDeps,
        "monitors" | "checkChanges" | "keyName" | "pages" | "alerts" | "followIncidents" | "timeZoneOf"
      > & {
        readonly incidents: IncidentStore;
      },
  ) {
    this.resource = incidentResource(deps);
  }

  /** Returns the open incident of a monitor, or null. */
  openOf(monitorRef: number): IncidentRow | null {
    return this.deps.incidents.openOf(monitorRef);
  }

  /** Opens the incident of a monitor, in the same transaction as its check. Returns the open incident if there is one already. */
  open(tx: Tx, monitor: IncidentMonitor, { at, cause, suppressedBy, probeStates }: Outage): IncidentRow {
    const open = this.openOf(monitor.ref);
    if (open !== null) return open;
    const { incidents, changes } = this.deps;
    const row: IncidentRow = {
      ...this.resource.identify(),
      ...NEW_INCIDENT,
      projectRef: monitor.projectRef,
      monitorRef: monitor.ref,
      monitorIds: [monitor.monitorId],
      title: `${monitor.name} is down`,
      titleGiven: false,
      impact: "outage",
      cause,
      startedAt: at,
      isPublic: false,
      announced: true,
      suppressedBy,
    };
    incidents.insert(tx, row);
    if (probeStates.length > 0) incidents.setProbeStates(tx, row.ref, probeStates);
    changes.inProject(tx, row.projectRef, "pulse", row.id);
    this.deps.pages.announce(tx, row);
    return row;
  }

  /** Removes the suppression of an incident, so that alerts are sent for it. */
  unsuppress(tx: Tx, incident: IncidentRow): IncidentRow {
    return incident.suppressedBy === null ? incident : this.write(tx, { ...incident, suppressedBy: null });
  }

  /** Resolves the open incident of a monitor. Returns null if there is none. */
  resolve(tx: Tx, monitorRef: number, at: number): IncidentRow | null {
    const open = this.openOf(monitorRef);
    if (open === null) return null;
    const resolved = this.write(tx, {
      ...open,
      status: "resolved",
      resolvedAt: Math.max(at, open.startedAt),
    });
    this.deps.pages.announce(tx, resolved);
    return resolved;
  }

  /**
   * Records who works on an incident: its alert is no longer repeated, and channels are notified once. Acknowledging it again
   * changes nothing. @throws ApiError `not_found`, `conflict` if it is resolved
   */
  acknowledge(tx: Tx, caller: Caller, incidentId: string): Incident {
    const before = this.findOpen(caller.project.ref, incidentId);
    if (before.acknowledgedAt !== null) {
      tx.audit(null);
      return viewOf(this.deps.incidents, before);
    }
    const { row, change } = this.acknowledgeBy(tx, before, authorOf(caller, this.deps));
    tx.audit(change);
    return viewOf(this.deps.incidents, row);
  }

  /** Records who works on an incident that nobody has acknowledged, and notifies channels. Returns it, and its audit entry. */
  acknowledgeBy(tx: Tx, before: IncidentRow, acknowledgedBy: string): ChangedIncident {
    const row = this.write(tx, { ...before, acknowledgedAt: tx.now, acknowledgedBy });
    const { projectRef, monitorRef, title } = row;
    const monitor = monitorRef === null ? null : this.deps.monitors.monitor(monitorRef);
    this.deps.alerts.notifyChannels(tx, {
      projectRef,
      monitor,
      event: "monitor.acknowledged",
      incidentId: row.id,
      ...(monitor === null ? { title } : {}),
      text: `by ${acknowledgedBy} · since ${clockText(row.startedAt, tx.now, this.deps.timeZoneOf(projectRef))}`,
      facts: { acknowledged_by: acknowledgedBy },
    });
    return { row, change: this.changeOf(before, row, "acknowledged") };
  }

  /**
   * Notifies nobody again of an outage for some time. @throws ApiError `not_found`, `conflict` if it is resolved or acknowledged,
   * and for an incident that people opened
   */
  snoozeFor(
    tx: Tx,
    caller: Caller,
    incidentId: string,
    { for_ms = SNOOZE_MS }: IncidentSnoozeBody,
  ): Incident {
    const before = this.findOpen(caller.project.ref, incidentId);
    if (before.monitorRef === null)
      throw new ApiError(
        "conflict",
        "Nobody is notified again of a manual incident. Snooze that of a monitor.",
      );
    if (before.acknowledgedAt !== null)
      throw new ApiError("conflict", "This incident is acknowledged: nobody is notified again.");
    const { row, change } = this.snooze(tx, before, tx.now + for_ms);
    tx.audit(change);
    return viewOf(this.deps.incidents, row);
  }

  /** Notifies nobody again of an outage until a time, epoch milliseconds. Returns it, and its audit entry. */
  snooze(tx: Tx, before: IncidentRow, until: number): ChangedIncident {
    const row = this.write(tx, { ...before, snoozedUntil: until });
    const monitor = row.monitorRef === null ? null : this.deps.monitors.monitor(row.monitorRef);
    if (monitor !== null) this.deps.alerts.notifyAgainAt(tx, monitor, until);
    return { row, change: this.changeOf(before, row, "snoozed") };
  }

  private changeOf(before: IncidentRow, after: IncidentRow, action: string): AuditChange {
    const { incidents } = this.deps;
    const sides = { before: summaryOf(incidents, before), after: summaryOf(incidents, after) };
    return { ...auditTarget(after, action), ...sides };
  }

  /**
   * Adds an update, which can resolve a manual incident. @throws ApiError `not_found`, `conflict`,
   * `incident_update_limit_exceeded`
   */
  addUpdate(tx: Tx, caller: Caller, incidentId: string, body: IncidentUpdateBody): Incident {
    const { incidents } = this.deps;
    const before = this.findOpen(caller.project.ref, incidentId);
    const { status, message = "" } = body;
    const isResolved = status === "resolved";
    if (isResolved && before.monitorRef !== null)
      throw new ApiError(
        "conflict",
        "An automatic incident cannot be resolved manually: the check that finds the target up resolves it.",
      );
    if (incidents.updatesCount(before.ref) >= INCIDENT_UPDATES_MAX)
      throw new ApiError(
        "incident_update_limit_exceeded",
        `An incident has at most ${INCIDENT_UPDATES_MAX} updates. Create another incident to post more.`,
      );
    const previous = summaryOf(this.deps.incidents, before);
    incidents.addUpdate(tx, before.ref, { at: tx.now, status, message, author: authorOf(caller, this.deps) });
    const row = this.write(tx, { ...before, status, ...(isResolved ? { resolvedAt: tx.now } : {}) });
    if (isResolved) this.deps.followIncidents(tx, row.monitorIds);
    this.deps.pages.announce(tx, row, message);
    tx.audit({
      ...auditTarget(row, isResolved ? "resolved" : "updated"),
      before: previous,
      // Without the earlier updates: up to 100 texts would be stored twice with each new one.
      after: { ...summaryOf(this.deps.incidents, row), update: { at: isoTime(tx.now), status, message } },
    });
    return viewOf(this.deps.incidents, row);
  }

  private write(tx: Tx, row: IncidentRow): IncidentRow {
    this.deps.incidents.update(tx, row);
    this.deps.changes.inProject(tx, row.projectRef, "pulse", row.id);
    return row;
  }

  private findOpen(projectRef: number, incidentId: string): IncidentRow {
    const row = this.resource.find(projectRef, incidentId);
    if (row.resolvedAt !== null)
      throw new ApiError(
        "conflict",
        "This incident is already resolved. Create a new one if the problem returned.",
      );
    return row;
  }
}

function auditTarget(row: IncidentRow, action: string): Pick<AuditChange, "summary" | "target"> {
  return { summary: auditSummary(row, action), target: { type: "incident", id: row.id } };
}
