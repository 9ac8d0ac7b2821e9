import { type AuditChange, changed } from "../../../kernel/audit/change.ts";
import { isUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, type ErrorMeaning, invalidField, registerErrors } from "../../../kernel/errors.ts";
import type { Caller } from "../../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import type { Notifications } from "../alerts/notifications.ts";
import { clockText, shownName } from "../domain.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import {
  INCIDENT_LIST_LIMIT,
  type Incident,
  type IncidentCreateBody,
  type IncidentPage,
  type IncidentPatch,
  type IncidentQuery,
  type IncidentSummary,
  type IncidentUpdateBody,
} from "./schema.ts";
import type { IncidentRow } from "./store.ts";

/** Maximum number of open manual incidents of a project: far more than people can work on. */
export const OPEN_INCIDENTS_MAX = 100;
/** Maximum number of updates of an incident: one response returns all of them. */
export const INCIDENT_UPDATES_MAX = 100;
/** Time that an incident is stored after it is resolved, in milliseconds. */
export const INCIDENT_RETENTION_MS = 400 * 24 * 60 * 60 * 1000;

const codes = registerErrors({
  incident_limit_exceeded: [
    403,
    "The project has reached its limit of open manual incidents. Resolve one first.",
  ],
  incident_update_limit_exceeded: [403, "The incident has reached its limit of updates."],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Outage found by a check. */
export interface Outage {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly cause: string | null;
  /** Incident, else monitor, that explains the outage; null for none. */
  readonly suppressedBy: string | null;
}

/** Automatic incidents, which monitors open and resolve, and manual ones. */
export class Incidents {
  private nextRef: number;

  constructor(
    private readonly parts: Pick<MonitorParts, "ids" | "incidents" | "monitors" | "keyName" | "changes">,
    private readonly notifications: Notifications,
  ) {
    this.nextRef = parts.incidents.highestRef() + 1;
  }

  /** Returns the open incident of a monitor, or null. */
  openOf(monitorRef: number): IncidentRow | null {
    return this.parts.incidents.openOf(monitorRef);
  }

  /** Opens the incident of a monitor, in the same transaction as its check. Returns the open incident if there is one already. */
  open(tx: Tx, monitor: MonitorRow, { at, cause, suppressedBy }: Outage): IncidentRow {
    const open = this.openOf(monitor.ref);
    if (open !== null) return open;
    return this.insert(tx, {
      projectRef: monitor.projectRef,
      monitorRef: monitor.ref,
      monitorIds: [monitor.monitorId],
      title: `${shownName(monitor.settings)} is down`,
      titleGiven: false,
      impact: "outage",
      cause,
      startedAt: at,
      isPublic: false,
      suppressedBy,
    });
  }

  /** Removes the suppression of an incident, so that alerts are sent for it. */
  unsuppress(tx: Tx, incident: IncidentRow): IncidentRow {
    return incident.suppressedBy === null ? incident : this.write(tx, { ...incident, suppressedBy: null });
  }

  /** Resolves the open incident of a monitor. Returns null if there is none. */
  resolve(tx: Tx, monitorRef: number, at: number): IncidentRow | null {
    const open = this.openOf(monitorRef);
    if (open === null) return null;
    return this.write(tx, { ...open, status: "resolved", resolvedAt: Math.max(at, open.startedAt) });
  }

  /** Creates a manual incident. @throws ApiError `validation_error` for a monitor outside the project, `incident_limit_exceeded` */
  create(tx: Tx, { project }: Caller, given: IncidentCreateBody): Incident {
    const { incidents } = this.parts;
    const { title, message = "", impact = "outage", monitor_ids = [], public: isPublic = false } = given;
    const monitorIds = this.monitorsIn(project.ref, monitor_ids);
    if (incidents.openManualCount(project.ref) >= OPEN_INCIDENTS_MAX)
      throw new ApiError(
        "incident_limit_exceeded",
        `A project has at most ${OPEN_INCIDENTS_MAX} open manual incidents. Resolve one first.`,
      );
    const row = this.insert(tx, {
      projectRef: project.ref,
      monitorRef: null,
      monitorIds,
      title,
      titleGiven: true,
      impact,
      cause: null,
      startedAt: tx.now,
      isPublic,
      suppressedBy: null,
    });
    if (message !== "") incidents.addUpdate(tx, row.ref, { at: tx.now, status: row.status, message });
    tx.audit({ ...auditTarget(row, "created"), before: null, after: this.view(row) });
    return this.view(row);
  }

  /** Lists a project's incidents, newest first. @throws ApiError `validation_error` for an invalid cursor */
  list(projectRef: number, query: IncidentQuery): IncidentPage {
    const { status, monitor_id, limit = INCIDENT_LIST_LIMIT, cursor } = query;
    const filter = {
      isOpen: status === undefined ? null : status === "open",
      monitorId: monitor_id?.toLowerCase() ?? null,
    };
    const params = { projectRef, before: pageStart(cursor), rowsMax: limit + 1 };
    const { items, ...next } = pageOf(this.parts.incidents.page(params, filter), limit, ({ ref }) => [ref]);
    return { incidents: items.map((row) => this.summaryOf(row)), ...next };
  }

  /** @throws ApiError `not_found` */
  get(projectRef: number, incidentId: string): Incident {
    return this.view(this.find(projectRef, incidentId));
  }

  /**
   * Records who works on an incident: its alert is no longer repeated, and channels are notified once. Acknowledging it again
   * changes nothing. @throws ApiError `not_found`, `conflict` if it is resolved
   */
  acknowledge(tx: Tx, caller: Caller, incidentId: string): Incident {
    const before = this.findOpen(caller.project.ref, incidentId);
    if (before.acknowledgedAt !== null) {
      tx.audit(null);
      return this.view(before);
    }
    const { account, session, credential } = caller;
    const acknowledgedBy = this.parts.keyName(session?.credential ?? credential) ?? account.userId;
    const row = this.write(tx, { ...before, acknowledgedAt: tx.now, acknowledgedBy });
    tx.audit({
      ...auditTarget(row, "acknowledged"),
      before: this.summaryOf(before),
      after: this.summaryOf(row),
    });
    const { projectRef, monitorRef, title } = row;
    const monitor = monitorRef === null ? null : this.parts.monitors.monitor(monitorRef);
    this.notifications.notifyChannels(tx, {
      projectRef,
      monitor,
      event: "monitor.acknowledged",
      incidentId,
      ...(monitor === null ? { title } : {}),
      text: `by ${acknowledgedBy} · since ${clockText(row.startedAt, tx.now)}`,
      facts: { acknowledged_by: acknowledgedBy },
    });
    return this.view(row);
  }

  /**
   * Adds an update, which can resolve a manual incident. @throws ApiError `not_found`, `conflict`,
   * `incident_update_limit_exceeded`
   */
  addUpdate(tx: Tx, projectRef: number, incidentId: string, given: IncidentUpdateBody): Incident {
    const { incidents } = this.parts;
    const before = this.findOpen(projectRef, incidentId);
    const { status, message = "" } = given;
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
    const previous = this.summaryOf(before);
    incidents.addUpdate(tx, before.ref, { at: tx.now, status, message });
    const row = this.write(tx, { ...before, status, ...(isResolved ? { resolvedAt: tx.now } : {}) });
    tx.audit({
      ...auditTarget(row, isResolved ? "resolved" : "updated"),
      before: previous,
      // Without the earlier updates: up to 100 texts would be stored twice with each new one.
      after: { ...this.summaryOf(row), update: { at: isoTime(tx.now), status, message } },
    });
    return this.view(row);
  }

  /** @throws ApiError `not_found` */
  update(tx: Tx, projectRef: number, incidentId: string, given: IncidentPatch): Incident {
    const before = this.find(projectRef, incidentId);
    const { title = before.title, public: isPublic = before.isPublic } = given;
    const titleGiven = before.titleGiven || title !== before.title;
    const row = this.write(tx, { ...before, title, titleGiven, isPublic });
    tx.audit(
      changed({
        ...auditTarget(row, "updated"),
        before: this.summaryOf(before),
        after: this.summaryOf(row),
      }),
    );
    return this.view(row);
  }

  /** Returns an incident with its updates, as the API shows it. */
  view(row: IncidentRow): Incident {
    const updates = this.parts.incidents.updates(row.ref);
    return {
      ...fieldsOf(row),
      updates: updates.map(({ at, ...update }) => ({ at: isoTime(at), ...update })),
    };
  }

  private summaryOf(row: IncidentRow): IncidentSummary {
    return { ...fieldsOf(row), updates_count: this.parts.incidents.updatesCount(row.ref) };
  }

  private insert(
    tx: Tx,
    given: Omit<
      IncidentRow,
      "ref" | "incidentId" | "status" | "acknowledgedAt" | "acknowledgedBy" | "resolvedAt"
    >,
  ): IncidentRow {
    const row: IncidentRow = {
      ...given,
      ref: this.nextRef++,
      incidentId: prefixedId("inc", this.parts.ids.uuidV7()),
      status: "investigating",
      acknowledgedAt: null,
      acknowledgedBy: null,
      resolvedAt: null,
    };
    this.parts.incidents.insert(tx, row);
    this.parts.changes.inProject(tx, row.projectRef, "pulse", row.incidentId);
    return row;
  }

  private write(tx: Tx, row: IncidentRow): IncidentRow {
    this.parts.incidents.update(tx, row);
    this.parts.changes.inProject(tx, row.projectRef, "pulse", row.incidentId);
    return row;
  }

  private find(projectRef: number, incidentId: string): IncidentRow {
    const row = this.parts.incidents.find(incidentId);
    if (row === null || row.projectRef !== projectRef)
      throw new ApiError("not_found", "There is no incident with this id in this project.");
    return row;
  }

  private findOpen(projectRef: number, incidentId: string): IncidentRow {
    const row = this.find(projectRef, incidentId);
    if (row.resolvedAt !== null)
      throw new ApiError(
        "conflict",
        "This incident is already resolved. Create a new one if the problem returned.",
      );
    return row;
  }

  private monitorsIn(projectRef: number, given: readonly string[]): string[] {
    const ids = [...new Set(given.map((id) => id.toLowerCase()))];
    const isInProject = (id: string) => isUuid(id) && this.parts.monitors.find(id)?.projectRef === projectRef;
    if (ids.every(isInProject)) return ids;
    throw invalidField("monitor_ids", "must contain only ids of monitors in this project");
  }
}

function auditTarget(
  { incidentId, title }: IncidentRow,
  action: string,
): Pick<AuditChange, "summary" | "target"> {
  return { summary: `Incident ${action}: ${title}`, target: { type: "incident", id: incidentId } };
}

/** Fields that an incident has both alone and in a list. */
function fieldsOf(row: IncidentRow): Omit<Incident, "updates"> {
  return {
    id: row.incidentId,
    kind: row.monitorRef === null ? "manual" : "auto",
    title: row.title,
    impact: row.impact,
    status: row.status,
    cause: row.cause,
    monitor_ids: [...row.monitorIds],
    started_at: isoTime(row.startedAt),
    acknowledged_at: isoTimeOrNull(row.acknowledgedAt),
    acknowledged_by: row.acknowledgedBy,
    resolved_at: isoTimeOrNull(row.resolvedAt),
    public: row.isPublic,
    suppressed_by: row.suppressedBy,
  };
}
