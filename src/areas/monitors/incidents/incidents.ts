import { type AuditChange, changed } from "../../../kernel/audit/change.ts";
import { isUuid, prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, type ErrorMeaning, invalidField, registerErrors } from "../../../kernel/errors.ts";
import type { Caller } from "../../../kernel/http/access/caller.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import type { Notices } from "../alerts/notifications.ts";
import { shownName, sinceText } from "../domain.ts";
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

/** Incidents told by people that last, in a project: a status page shows all of them. */
export const OPEN_INCIDENTS_MAX = 100;
/** What people say of one incident: an answer shows all of it. */
export const INCIDENT_UPDATES_MAX = 100;
/** How long an incident is kept after its end. */
export const INCIDENTS_KEPT_MS = 400 * 24 * 60 * 60 * 1000;

const codes = registerErrors({
  incident_limit_exceeded: [403, "The project has as many open incidents as it may have."],
  incident_update_limit_exceeded: [403, "The incident has as many updates as it may have."],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** What has begun, as a monitor tells it. */
export interface Outage {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly cause: string | null;
  /** The incident, else the monitor, that accounts for it. */
  readonly suppressedBy: string | null;
}

/** The use cases of incidents: of monitors, and of people. */
export class Incidents {
  private nextRef: number;

  constructor(
    private readonly parts: Pick<MonitorParts, "ids" | "incidents" | "monitors" | "keyName" | "changes">,
    private readonly notices: Notices,
  ) {
    this.nextRef = parts.incidents.highestRef() + 1;
  }

  /** The outage of a monitor that lasts; null where there is none. */
  openOf(monitorRef: number): IncidentRow | null {
    return this.parts.incidents.openOf(monitorRef);
  }

  /** Opens the outage of a monitor, in the unit of work that finds it; one that lasts goes on. */
  begin(tx: Tx, monitor: MonitorRow, { at, cause, suppressedBy }: Outage): IncidentRow {
    const open = this.openOf(monitor.ref);
    if (open !== null) return open;
    const { projectRef, ref: monitorRef, monitorId } = monitor;
    const title = `${shownName(monitor.settings)} is down`;
    const about = { projectRef, monitorRef, monitorIds: [monitorId], title, impact: "outage" } as const;
    return this.insert(tx, {
      ...about,
      titleGiven: false,
      cause,
      startedAt: at,
      isPublic: false,
      suppressedBy,
    });
  }

  /** The outage as one that is told of, whatever accounted for it before. */
  tellOf(tx: Tx, incident: IncidentRow): IncidentRow {
    return incident.suppressedBy === null ? incident : this.write(tx, { ...incident, suppressedBy: null });
  }

  /** Ends the outage of a monitor; null where none lasts. */
  end(tx: Tx, monitorRef: number, at: number): IncidentRow | null {
    const open = this.openOf(monitorRef);
    if (open === null) return null;
    return this.write(tx, { ...open, status: "resolved", resolvedAt: Math.max(at, open.startedAt) });
  }

  /** Tells of an incident. @throws ApiError `validation_error` for a foreign monitor, `incident_limit_exceeded` */
  create(tx: Tx, { project }: Caller, given: IncidentCreateBody): Incident {
    const { incidents } = this.parts;
    const { title, message = "", impact = "outage", monitor_ids = [] } = given;
    const monitorIds = this.monitorsIn(project.ref, monitor_ids);
    if (incidents.openByPeople(project.ref) >= OPEN_INCIDENTS_MAX)
      throw new ApiError(
        "incident_limit_exceeded",
        `A project has at most ${OPEN_INCIDENTS_MAX} open incidents of people. Resolve one.`,
      );
    const about = { projectRef: project.ref, monitorRef: null, monitorIds, title, titleGiven: true, impact };
    const how = { cause: null, startedAt: tx.now, isPublic: given.public ?? false, suppressedBy: null };
    const row = this.insert(tx, { ...about, ...how });
    if (message !== "") incidents.addUpdate(tx, row.ref, { at: tx.now, status: row.status, message });
    tx.audit({ ...aboutIncident(row, "opened"), before: null, after: this.view(row) });
    return this.view(row);
  }

  /** A page of a project's incidents, newest first. @throws ApiError `validation_error` for a foreign cursor. */
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
  read(projectRef: number, incidentId: string): Incident {
    return this.view(this.find(projectRef, incidentId));
  }

  /** Somebody takes care of it: nothing is repeated, and channels are told, once. @throws ApiError `not_found`, `conflict` */
  acknowledge(tx: Tx, caller: Caller, incidentId: string): Incident {
    const before = this.findOpen(caller.project.ref, incidentId);
    if (before.acknowledgedAt !== null) {
      tx.audit(null);
      return this.view(before);
    }
    const { account, session, credential } = caller;
    const acknowledgedBy = this.parts.keyName(session?.credential ?? credential) ?? account.userId;
    const row = this.write(tx, { ...before, acknowledgedAt: tx.now, acknowledgedBy });
    tx.audit({ ...aboutIncident(row, "acknowledged"), before: this.view(before), after: this.view(row) });
    const { projectRef, monitorRef, title } = row;
    const monitor = monitorRef === null ? null : this.parts.monitors.monitor(monitorRef);
    this.notices.tell(tx, {
      projectRef,
      monitor,
      event: "monitor.acknowledged",
      incidentId,
      ...(monitor === null ? { title } : {}),
      text: `by ${acknowledgedBy} · ${sinceText(row.startedAt, tx.now)}`,
      facts: { acknowledged_by: acknowledgedBy },
    });
    return this.view(row);
  }

  /** Says something of it. @throws ApiError `not_found`, `conflict`, `incident_update_limit_exceeded` */
  addUpdate(tx: Tx, projectRef: number, incidentId: string, given: IncidentUpdateBody): Incident {
    const { incidents } = this.parts;
    const before = this.findOpen(projectRef, incidentId);
    const { status, message = "" } = given;
    const isOver = status === "resolved";
    if (isOver && before.monitorRef !== null)
      throw new ApiError(
        "conflict",
        "This incident is resolved by the check that finds its target up again.",
      );
    if (incidents.updatesCount(before.ref) >= INCIDENT_UPDATES_MAX)
      throw new ApiError(
        "incident_update_limit_exceeded",
        `An incident has at most ${INCIDENT_UPDATES_MAX} updates.`,
      );
    const was = this.view(before);
    incidents.addUpdate(tx, before.ref, { at: tx.now, status, message });
    const row = this.write(tx, { ...before, status, ...(isOver ? { resolvedAt: tx.now } : {}) });
    tx.audit({ ...aboutIncident(row, isOver ? "resolved" : "updated"), before: was, after: this.view(row) });
    return this.view(row);
  }

  /** @throws ApiError `not_found` */
  change(tx: Tx, projectRef: number, incidentId: string, given: IncidentPatch): Incident {
    const before = this.find(projectRef, incidentId);
    const { title = before.title, public: isPublic = before.isPublic } = given;
    const titleGiven = before.titleGiven || title !== before.title;
    const row = this.write(tx, { ...before, title, titleGiven, isPublic });
    tx.audit(changed({ ...aboutIncident(row, "changed"), before: this.view(before), after: this.view(row) }));
    return this.view(row);
  }

  /** An incident with its updates. */
  view(row: IncidentRow): Incident {
    const updates = this.parts.incidents.updates(row.ref);
    return {
      ...fieldsOf(row),
      updates: updates.map(({ at, ...said }) => ({ at: isoTime(at), ...said })),
    };
  }

  private summaryOf(row: IncidentRow): IncidentSummary {
    return { ...fieldsOf(row), updates_count: this.parts.incidents.updatesCount(row.ref) };
  }

  private insert(
    tx: Tx,
    about: Omit<
      IncidentRow,
      "ref" | "incidentId" | "status" | "acknowledgedAt" | "acknowledgedBy" | "resolvedAt"
    >,
  ): IncidentRow {
    const incidentId = prefixedId("inc", this.parts.ids.uuidV7());
    const open = {
      status: "investigating",
      acknowledgedAt: null,
      acknowledgedBy: null,
      resolvedAt: null,
    } as const;
    const row: IncidentRow = { ...about, ...open, ref: this.nextRef++, incidentId };
    this.parts.incidents.insert(tx, row);
    this.parts.changes.inProject(tx, row.projectRef, "pulse", incidentId);
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
    if (row.resolvedAt !== null) throw new ApiError("conflict", "This incident is resolved.");
    return row;
  }

  private monitorsIn(projectRef: number, given: readonly string[]): string[] {
    const ids = [...new Set(given.map((id) => id.toLowerCase()))];
    const isThere = (id: string) => isUuid(id) && this.parts.monitors.find(id)?.projectRef === projectRef;
    if (ids.every(isThere)) return ids;
    throw invalidField("monitor_ids", "must be ids of monitors of this project");
  }
}

function aboutIncident(
  { incidentId, title }: IncidentRow,
  what: string,
): Pick<AuditChange, "summary" | "target"> {
  return { summary: `Incident ${what}: ${title}`, target: { type: "incident", id: incidentId } };
}

/** What an incident has alone and in a list. */
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
