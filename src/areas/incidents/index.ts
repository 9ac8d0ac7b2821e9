import type { Caller } from "../../kernel/callers/caller.ts";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX } from "../../kernel/projects/overview-card.ts";
import type { ProjectContents } from "../../kernel/projects/resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { secondsOf } from "../../kernel/time/units.ts";
import { downText } from "./domain.ts";
import { incidentExport } from "./export.ts";
import { DIGEST_RETENTION_MS, INCIDENT_RETENTION_MS, Incidents } from "./lifecycle.ts";
import { linkRoutes } from "./link-routes.ts";
import { AlertLinks, linkToken } from "./links.ts";
import { type CheckEffects, Outages } from "./outages.ts";
import { pageIncidentStore } from "./page-store.ts";
import type { IncidentDeps, IncidentMonitor } from "./ports.ts";
import { incidentRoutes } from "./routes.ts";
import { INCIDENT_UPDATES_MAX } from "./schema.ts";
import { incidentStore } from "./store.ts";

/** What is stored of incidents: other areas read it before incidents can notify anyone. */
export type IncidentLog = ReturnType<typeof openIncidents>;

/** Opens the log of incidents. */
export function openIncidents({ db, vault }: Pick<Kernel, "db" | "vault">) {
  const store = incidentStore(db);
  return {
    ...store,
    ofPages: pageIncidentStore(db),
    /** A token of a link in an alert about an incident to a channel; its reference is 0 for the e-mail of the account. */
    linkToken: (incidentId: string, channelRef: number) => linkToken(vault, incidentId, channelRef),
    /** Maximum number of updates of an incident. */
    updatesMax: INCIDENT_UPDATES_MAX,
    /** The newest incidents of a project with the time of their last update; `isOpen` null: open and resolved ones. */
    newest: (projectRef: number, isOpen: boolean | null, rowsMax: number) =>
      store
        .pageBy({ projectRef, before: Number.MAX_SAFE_INTEGER, rowsMax }, { isOpen, monitorId: null })
        .map((row) => ({ ...row, updatedAt: store.newestUpdates(row.ref, 1)[0]?.at ?? null })),
  };
}

/** A monitor that is down, and its last check. */
export interface DownMonitor {
  readonly monitor: IncidentMonitor;
  /** Null: that of the check that opened the incident. */
  readonly error: string | null;
  readonly responseStatus: number | null;
  /** What each probe sees; empty where only the server checks it. */
  readonly probeStates: readonly ProbeState[];
}

/** What the area offers to the server. */
export interface IncidentsArea extends ApiArea {
  readonly contents: ProjectContents;
  readonly exported: AreaExport;
  /** Number of open incidents of the caller's project, up to `COUNTED_MAX`. */
  readonly openCount: (caller: Caller) => number;
  /** Carries out what a check causes, in its unit of work. */
  carryOut(tx: Tx, effects: CheckEffects): void;
  /** Resolves the open incident of a monitor, if any, without a notification. */
  resolve(tx: Tx, monitorRef: number): void;
  /** The reminder of the outage of a monitor; null: nobody is reminded. */
  reminderOf(down: DownMonitor, now: number): ReminderOfOutage | null;
}

/** A reminder of an outage that continues. */
export interface ReminderOfOutage {
  readonly incidentId: string;
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Until when nobody is notified, epoch milliseconds; null if it is not snoozed. */
  readonly silentUntil: number | null;
}

/** Builds the area on its log: the incidents that monitors open and resolve, and manual ones. */
export function createIncidents(kernel: Kernel, log: IncidentLog, deps: IncidentDeps): IncidentsArea {
  const incidents = new Incidents({ ...kernel, ...deps, incidents: log });
  const outages = new Outages(incidents, deps.alerts, deps.timeZoneOf);
  const links = new AlertLinks({ ...kernel, ...deps, incidents: log }, incidents);
  kernel.metrics.number(
    "ninefold_incidents_open",
    `Open incidents of all projects, counted up to ${COUNTED_MAX}.`,
    () => log.openCountOfAll(COUNTED_MAX),
  );
  kernel.housekeeping.addPurge({
    name: "incidents.purge",
    rowsMax: 2_000,
    remove: (tx, rowsMax) => log.removeOld(tx, rowsMax, tx.now - INCIDENT_RETENTION_MS),
  });
  kernel.housekeeping.addPurge({
    name: "incidents.digests.purge",
    rowsMax: 2_000,
    remove: (tx, rowsMax) => log.removeDigestsBefore(tx, tx.now - DIGEST_RETENTION_MS, rowsMax),
  });
  return {
    parts: [],
    routes: (api) => [
      ...incidentRoutes(api, incidents),
      linkRoutes(api, { links, style: deps.statusStyle, clock: kernel.clock }),
    ],
    contents: {
      removeRows(tx, projectRef, rowsMax) {
        const removed = log.removeOfProject(tx, projectRef, rowsMax);
        return removed + log.removeDigestsOfProject(tx, projectRef, rowsMax - removed);
      },
    },
    exported: incidentExport,
    openCount: ({ project }) => log.openCount(project.ref, COUNTED_MAX),
    carryOut: (tx, effects) => outages.carryOut(tx, effects),
    resolve: (tx, monitorRef) => void incidents.resolve(tx, monitorRef, tx.now),
    reminderOf: (down, now) => reminderOf(log, down, { now, zone: deps.timeZoneOf(down.monitor.projectRef) }),
  };
}

/** Nobody is notified again of an outage that is over or acknowledged, or whose suppression ends with an alert of its own. */
function reminderOf(
  log: Pick<IncidentLog, "openOf">,
  { monitor, error, responseStatus, probeStates }: DownMonitor,
  time: { readonly now: number; readonly zone: string },
): ReminderOfOutage | null {
  const { now } = time;
  const incident = log.openOf(monitor.ref);
  if (incident === null || incident.acknowledgedAt !== null || incident.suppressedBy !== null) return null;
  return {
    incidentId: incident.id,
    silentUntil: (incident.snoozedUntil ?? 0) > now ? incident.snoozedUntil : null,
    text: downText(incident.cause, incident, time),
    facts: {
      status: monitor.status,
      previous_status: monitor.status,
      error: error ?? incident.cause,
      response_status: responseStatus,
      latency_ms: monitor.latencyMs,
      consecutive_failures: monitor.consecutiveFailures,
      checked_at: monitor.lastCheckedAt && secondsOf(monitor.lastCheckedAt),
      ...(probeStates.length > 0 ? { probe_states: probeStates } : {}),
    },
  };
}
