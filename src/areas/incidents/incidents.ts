import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { isUuid } from "../../kernel/data/uuid.ts";
import { ApiError, invalidField } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { limitPerProject } from "../../kernel/resources/limit.ts";
import { managedView } from "../../kernel/resources/managed.ts";
import { resource } from "../../kernel/resources/resource.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { authorOf } from "./author.ts";
import { courseOf } from "./course.ts";
import type { IncidentDeps } from "./ports.ts";
import {
  INCIDENT_LIST_LIMIT,
  Incident,
  IncidentCreateBody,
  IncidentFilters,
  IncidentPatch,
  IncidentSummary,
} from "./schema.ts";
import type { IncidentRow, IncidentStore } from "./store.ts";
import { timelineOf } from "./timeline.ts";

const PATH = "/v1/pulse/incidents";

/** Maximum number of open manual incidents of a project: far more than people can work on. */
export const OPEN_INCIDENTS_MAX = 100;

/** The progress of a new incident. */
export const NEW_INCIDENT = {
  status: "investigating",
  acknowledgedAt: null,
  acknowledgedBy: null,
  snoozedUntil: null,
  resolvedAt: null,
  managedBy: null,
} as const;

/** Declares incidents. Monitors open and resolve theirs automatically; the API creates manual ones. */
export function incidentResource(
  deps: Pick<Kernel, "ids"> &
    Pick<IncidentDeps, "monitors" | "checkChanges" | "pages" | "keyName" | "followIncidents"> & {
      readonly incidents: IncidentStore;
    },
) {
  const { ids, incidents, monitors, pages, followIncidents } = deps;
  function monitorsIn(projectRef: number, ids: readonly string[], known: readonly string[] = []): string[] {
    const monitorIds = [...new Set(ids.map((id) => id.toLowerCase()))];
    const isInProject = (id: string) =>
      known.includes(id) || (isUuid(id) && monitors.find(id)?.projectRef === projectRef);
    if (monitorIds.every(isInProject)) return monitorIds;
    throw invalidField("monitor_ids", "must contain only ids of monitors in this project");
  }

  /** Monitors that were deleted since can stay: a client sends back what it has read. */
  function changedMonitors(
    before: IncidentRow,
    { monitor_ids }: { readonly monitor_ids?: readonly string[] },
  ): readonly string[] {
    if (monitor_ids === undefined) return before.monitorIds;
    if (before.monitorRef === null) return monitorsIn(before.projectRef, monitor_ids, before.monitorIds);
    throw new ApiError(
      "conflict",
      "The monitor of an automatic incident cannot be changed. Create a manual incident for other monitors.",
    );
  }

  return resource(ids, {
    type: "incident",
    title: "incident",
    idPrefix: "inc",
    path: PATH,
    operations: "monitors.incidents",
    tag: "Monitors",
    access: { area: "pulse", cost: 1, limit: "monitor" },
    // An export has settings, and a file that is applied again must not repeat the past.
    file: {
      omitted: ["message"],
      listPath: `${PATH}?kind=manual`,
      createOnly: true,
      isRecord: true,
      check: assertCourse,
    },
    name: { field: "title", taken: null },
    limit: limitPerProject(
      "incident_limit_exceeded",
      OPEN_INCIDENTS_MAX,
      incidents.openManualCount,
      `A project has at most ${OPEN_INCIDENTS_MAX} open manual incidents. Resolve one first.`,
    ),
    store: incidents,
    schema: Incident,
    view: (row) => viewOf(incidents, row),
    summary: (row, done) => auditSummary(row, done === "changed" ? "updated" : done),
    // Without the updates of the past, which are up to 64 KiB.
    audited: (shown, row, done) =>
      done === "created" && shown.updates.length < 2 ? shown : summaryOf(incidents, row),
    list: {
      summary: "List incidents, newest first",
      description:
        "Automatic and manual ones. Resolved incidents are stored for 400 days. Updates and the timeline are only in a single incident.",
      key: "incidents",
      schema: "IncidentPage",
      limit: INCIDENT_LIST_LIMIT,
      filters: IncidentFilters,
      rows({ caller: { project } }, page, { status, monitor_id, kind }) {
        if (kind !== undefined && monitor_id !== undefined)
          throw invalidField("kind", "cannot be combined with monitor_id");
        const isOpen = status === undefined ? null : status === "open";
        const monitorId = monitor_id?.toLowerCase() ?? null;
        const filter = { isOpen, monitorId, isManual: kind !== undefined };
        return incidents.pageBy({ ...page, projectRef: project.ref }, filter);
      },
      item: IncidentSummary,
      view: (row) => summaryOf(incidents, row),
    },
    read: {
      summary: "Get an incident with its updates, its timeline, and what status pages show of it",
      description:
        "Use it to understand an outage: the timeline has the checks that changed the status and the alerts that were sent, with their result.",
      view(row, { tx }) {
        const affected = row.monitorIds.flatMap((id) => monitors.find(id) ?? []);
        return {
          ...viewOf(incidents, row),
          ...timelineOf(deps, row, affected),
          monitors: pages.monitors(row.projectRef, affected, tx.now),
          probe_states: probeStatesOf(deps, row),
          status_pages: pages.statusPages(row, affected),
        };
      },
    },
    create: {
      summary: "Create an incident",
      description:
        "Monitors open and resolve their incidents automatically; this creates a manual one. The states of manual monitors follow from it. With `started_at`, `resolved_at` or `updates` it is one of the past, of which nobody is notified.",
      example: { title: "Payments fail", message: "Our provider has an outage.", public: true },
      body: IncidentCreateBody,
      row({ tx, caller: { project } }, body, identity) {
        const { startedAt, resolvedAt, status } = courseOf(body, tx.now);
        return {
          ...NEW_INCIDENT,
          ...identity,
          status,
          resolvedAt,
          monitorRef: null,
          monitorIds: monitorsIn(project.ref, body.monitor_ids ?? []),
          title: body.title,
          titleGiven: true,
          impact: body.impact ?? "outage",
          cause: null,
          startedAt,
          isPublic: body.public ?? false,
          announced: body.public ?? false,
          suppressedBy: null,
        };
      },
      created({ tx, caller }, row, body) {
        const { updates, isPast } = courseOf(body, tx.now);
        const author = authorOf(caller, deps);
        for (const update of updates) incidents.addUpdate(tx, row.ref, { ...update, author });
        if (row.resolvedAt === null) followIncidents(tx, row.monitorIds);
        if (!isPast && row.managedBy === null) pages.announce(tx, row, body.message);
      },
    },
    change: {
      verb: "change",
      role: "responder",
      summary: "Update an incident",
      description:
        "Changes its title, its impact, its visibility, and the monitors that a manual incident affects. Post the progress as an update.",
      example: { public: true },
      errors: ["conflict"],
      body: IncidentPatch,
      row(_, before, body) {
        const { title = before.title, impact = before.impact, public: isPublic = before.isPublic } = body;
        const titleGiven = before.titleGiven || title !== before.title;
        const monitorIds = changedMonitors(before, body);
        const announced = before.announced || (isPublic && before.resolvedAt === null);
        return { ...before, title, titleGiven, impact, isPublic, announced, monitorIds };
      },
      changed({ tx }, row, { monitor_ids }, before) {
        if (monitor_ids !== undefined) incidents.setMonitors(tx, before, row.monitorIds);
        if (row.resolvedAt === null)
          followIncidents(tx, [...new Set([...before.monitorIds, ...row.monitorIds])]);
        if (!before.announced) pages.announce(tx, row);
      },
    },
    // They are removed some time after they are resolved.
    delete: null,
  });
}

/** Checks the times of an incident of a file, as far as the clock does not matter. @throws ApiError `validation_error` */
function assertCourse(body: IncidentCreateBody): void {
  courseOf(body, Number.MAX_SAFE_INTEGER);
}

/** What probes see of the monitor of an open incident, and what they saw when a resolved one was opened. */
function probeStatesOf(
  { incidents, monitors }: Pick<IncidentDeps, "monitors"> & { readonly incidents: IncidentStore },
  { ref, monitorRef, resolvedAt }: IncidentRow,
): ProbeState[] {
  if (monitorRef === null) return [];
  return resolvedAt === null ? monitors.probeStates(monitorRef) : incidents.probeStatesAtStart(ref);
}

/** One line for the audit log. */
export function auditSummary({ title }: IncidentRow, action: string): string {
  return `Incident ${action}: ${title}`;
}

/** An incident with its updates, as the API shows it. */
export function viewOf(incidents: IncidentStore, row: IncidentRow): Incident {
  const updates = incidents.updates(row.ref);
  return { ...fieldsOf(row), updates: updates.map(({ at, ...update }) => ({ at: isoTime(at), ...update })) };
}

/** An incident in a list. */
export function summaryOf(incidents: IncidentStore, row: IncidentRow): IncidentSummary {
  return { ...fieldsOf(row), updates_count: incidents.updatesCount(row.ref) };
}

/** Fields that an incident has both alone and in a list. */
function fieldsOf(row: IncidentRow): Omit<IncidentSummary, "updates_count"> {
  return {
    id: row.id,
    kind: row.monitorRef === null ? "manual" : "auto",
    title: row.title,
    impact: row.impact,
    status: row.status,
    cause: row.cause,
    monitor_ids: [...row.monitorIds],
    started_at: isoTime(row.startedAt),
    acknowledged_at: isoTimeOrNull(row.acknowledgedAt),
    acknowledged_by: row.acknowledgedBy,
    snoozed_until: isoTimeOrNull(row.snoozedUntil),
    resolved_at: isoTimeOrNull(row.resolvedAt),
    public: row.isPublic,
    suppressed_by: row.suppressedBy,
    ...managedView(row.managedBy),
  };
}
