import { Type } from "@sinclair/typebox";
import type { ProbeState } from "../../kernel/data/probe-state.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { typeBehaviors } from "./behaviors.ts";
import { Checks } from "./checks/checks.ts";
import { CheckQueue } from "./checks/queue.ts";
import { CheckSchedule } from "./checks/schedule.ts";
import { CHECK_RETENTION_MS } from "./domain.ts";
import { monitorExport } from "./export.ts";
import { factsOf, type MonitorFacts } from "./facts.ts";
import { HeartbeatChecks } from "./heartbeats/heartbeat-checks.ts";
import { Heartbeats } from "./heartbeats/heartbeats.ts";
import { Pings } from "./heartbeats/pings.ts";
import { heartbeatRoutes } from "./heartbeats/routes.ts";
import { SteadyHeartbeats } from "./heartbeats/steady.ts";
import { heartbeatRows, heartbeatStore, pingStore } from "./heartbeats/store.ts";
import { checkChanges, type Period } from "./history/check-changes.ts";
import { dayStore } from "./history/day-store.ts";
import { Days } from "./history/days.ts";
import { historyFactsOf } from "./history/facts.ts";
import { declareGauges, declareProbeGauge } from "./history/gauges.ts";
import { MAINTENANCE_MAX } from "./maintenance/schema.ts";
import { maintenanceStore } from "./maintenance/store.ts";
import { ManualMonitors } from "./manual.ts";
import { monitorCard } from "./overview-card.ts";
import type { MonitorDeps } from "./ports.ts";
import { ProbeAssignments, probeResource } from "./probes/probes.ts";
import { ProbeRemoval } from "./probes/removal.ts";
import { probeRoutes } from "./probes/routes.ts";
import { probeStore } from "./probes/store.ts";
import { ProbeWorkplace } from "./probes/work.ts";
import { Registries } from "./registry/registries.ts";
import { registryStore } from "./registry/store.ts";
import { monitorRoutes } from "./routes.ts";
import { MonitorService } from "./service.ts";
import { checkStore, monitorRows, monitorStore } from "./store.ts";
import { createSuppression } from "./suppression/index.ts";
import { MonitorViews } from "./views.ts";
import { voteStore } from "./votes/store.ts";
import { probeStatesOf, Votes } from "./votes/votes.ts";

registerErrorFields({
  monitor_id: Type.String({
    description:
      "With `monitor_name_taken` and `monitor_slug_taken`: the id of the monitor that uses the name or slug.",
  }),
});

/** Stored checks of all monitors, about 4 GB: above it, the oldest are deleted before their 30 days end. */
const STORED_CHECKS_MAX = 100_000_000;

/** A monitor that is down, with its last check. */
interface DownMonitor {
  readonly monitor: MonitorFacts;
  readonly error: string | null;
  readonly responseStatus: number | null;
  /** What each probe sees; empty where only the server checks it. */
  readonly probeStates: readonly ProbeState[];
  /** Until when notifications about it must wait, epoch milliseconds; null: they need not. */
  readonly silentUntil: number | null;
}

/** What the area offers to the server. */
export interface MonitorsArea extends ApiArea {
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  readonly card: OverviewCard;
  /** A monitor whose outage continues; null if it is not down or is flapping, which ends with an alert of its own. */
  readonly downMonitor: (ref: number, now: number) => DownMonitor | null;
  /** Gives the manual monitors among some of one project the states of the open incidents that name them. */
  readonly followIncidents: (tx: Tx, monitorIds: readonly string[]) => void;
  /** Ends the requests of probes that wait, because the server stops. */
  readonly endStreams: () => void;
  /** Writes what is in memory alone. */
  readonly finish: () => Promise<void>;
}

/** What is stored of monitors: other areas read it before monitors can alert anyone. */
export type MonitorLog = ReturnType<typeof openMonitors>;

/** Opens what is stored of monitors. */
export function openMonitors(kernel: Kernel) {
  const stores = openStores(kernel);
  const { monitors, checks, maintenance } = stores;
  const days = new Days(stores.dayCounts);
  const rowsOf = (refs: readonly number[]) => refs.flatMap((ref) => monitors.monitor(ref) ?? []);
  return {
    stores,
    days,
    /** Monitors by id or reference; null for none. */
    find(monitorId: string): MonitorFacts | null {
      const row = monitors.find(monitorId);
      return row && factsOf(row);
    },
    monitor(ref: number): MonitorFacts | null {
      const row = monitors.monitor(ref);
      return row && factsOf(row);
    },
    /** A monitor by id with its history; null for none. */
    findWithHistory(monitorId: string) {
      const row = monitors.find(monitorId);
      return row && historyFactsOf({ checks, days }, row);
    },
    /** What each probe of a monitor sees now; empty where only the server checks it, and for one that is gone. */
    probeStates(ref: number): ProbeState[] {
      const row = monitors.monitor(ref);
      return row === null ? [] : probeStatesOf(stores.votes, row);
    },
    checkChanges: (of: readonly { readonly ref: number }[], period: Period, changesMax: number) =>
      checkChanges(checks, rowsOf(of.map(({ ref }) => ref)), period, changesMax),
    isStopped: (projectRef: number) => stores.stopped.has(projectRef),
    maintenance: {
      ofProject: (projectRef: number) =>
        maintenance.page(projectRef, Number.MAX_SAFE_INTEGER, MAINTENANCE_MAX),
      monitorIdsOf: (ref: number) => maintenance.idsOf(ref).map(({ id }) => bytesToUuid(id)),
      /** Whether a public window of a monitor is open. */
      isPublicAt: (monitorRef: number, at: number) =>
        maintenance.hasWindows(monitorRef) !== 0 && maintenance.isPublicAt(monitorRef, at, at) !== 0,
    },
  };
}

/** Builds the area on what is stored of it: monitors, their checks and heartbeats, and maintenance. */
export function createMonitors(
  kernel: Kernel,
  { stores, days }: MonitorLog,
  others: MonitorDeps,
): MonitorsArea {
  days.register(kernel);
  const deps = { ...kernel, ...others, ...stores, days };
  declareGauges(kernel, deps);
  const queue = new CheckQueue(deps);
  const heartbeats = new Heartbeats(deps);
  const manual = new ManualMonitors({
    ...deps,
    checks: { recordState: (...state) => checks.recordState(...state) },
  });
  const registries = new Registries(deps);
  const behaviors = typeBehaviors(deps.monitors, queue, heartbeats, manual, registries, kernel.clock);
  const { suppression, connectivity, maintenance } = createSuppression({
    ...deps,
    checkAt: (tx, monitor, at) => queue.checkAt(tx, monitor, at),
    recheck: (tx, monitor) => behaviors(monitor.settings.type).recheck(tx, monitor),
  });
  const { probes, votes: voteRows } = deps;
  const votes = new Votes(voteRows, kernel.clock, kernel.scheduler.suspended);
  const checks = new Checks(deps, deps.alerting, suppression, connectivity, votes, registries);
  const workplace = new ProbeWorkplace({ ...deps, checks });
  const removal = new ProbeRemoval(deps);
  declareProbeGauge(kernel, { ...deps, workplace });
  const assignments = new ProbeAssignments({ probes, votes: voteRows, workplace });
  new CheckSchedule(deps, queue, checks, suppression, workplace);
  const heartbeatChecks = new HeartbeatChecks(deps, heartbeats, checks, suppression);
  const views = new MonitorViews({ ...deps, suppression, behaviors, votes });
  const service = new MonitorService({
    ...deps,
    assignments,
    behaviors,
    checker: checks,
    heartbeatService: heartbeats,
    probeWork: workplace,
    queue,
    suppression,
    views,
    windows: maintenance.windows,
  });
  const pings = new Pings(deps, heartbeatChecks, (tx, owner, slug) => service.createPinged(tx, owner, slug));
  const findMonitor = (projectRef: number, monitorId: string) => service.find(projectRef, monitorId);
  const { steady, stopped } = deps;
  kernel.housekeeping.addPurge({
    name: "monitors.purge",
    rowsMax: 2_000,
    remove: (tx, rowsMax) =>
      deps.checks.removeOld(tx, rowsMax, tx.now - CHECK_RETENTION_MS, STORED_CHECKS_MAX),
  });
  return {
    card: monitorCard(deps),
    followIncidents: (tx, monitorIds) => manual.follow(tx, monitorIds),
    endStreams: () => workplace.stop(),
    finish: () => steady.finish(),
    downMonitor(ref, now) {
      const row = deps.monitors.monitor(ref);
      if (row === null || !row.settings.active || row.status !== "down") return null;
      if (stopped.has(row.projectRef) || suppression.isFlapping(row)) return null;
      const last = deps.checks.check(row.lastCheck);
      return {
        monitor: factsOf(row),
        error: last?.error ?? null,
        responseStatus: last?.responseStatus ?? null,
        probeStates: votes.viewOf(row),
        silentUntil: suppression.suppressedUntil(ref, now),
      };
    },
    parts: [
      {
        name: "Monitors",
        description:
          "Scheduled checks of URLs, and heartbeats that expect pings, with alerts by webhook, chat and e-mail, history and uptime.",
      },
    ],
    alsoCalled: { pulse: ["monitors", "monitoring", "uptime", "checks", "heartbeats"] },
    routes: (api) => [
      ...monitorRoutes(api, service),
      resourceRoutes(api, maintenance.resource),
      resourceRoutes(api, probeResource({ ...deps, workplace, removal })),
      probeRoutes(api, workplace),
      ...heartbeatRoutes(api, { heartbeats, pings, findMonitor }),
    ],
    exported: monitorExport({ ...kernel, pings: deps.heartbeats, exportedChannels: deps.exportedChannels }),
    resources: {
      name: "monitors",
      count: (projectRef) => deps.monitors.count(projectRef, COUNTED_MAX),
      projectDeleted: (tx, projectRef) => {
        stopped.stop(tx, projectRef);
        workplace.projectDeleted(tx, projectRef);
      },
      removeRows: (tx, projectRef, rowsMax) => service.removeRows(tx, projectRef, rowsMax),
    },
  };
}

/** Opens the stores of the area. What is in memory of steady heartbeats comes before the rows. */
function openStores(kernel: Kernel) {
  const { db } = kernel;
  const checks = checkStore(db);
  const [monitors, heartbeats] = [monitorRows(db), heartbeatRows(db)];
  const pings = pingStore(db);
  const steady = new SteadyHeartbeats(kernel, { monitors, heartbeats, checks, pings });
  return {
    monitors: monitorStore(db, steady, monitors),
    checks,
    stopped: new StoppedProjects(db, "monitor_stopped_projects"),
    dayCounts: dayStore(db, steady),
    heartbeats: heartbeatStore(db, steady, heartbeats, pings),
    maintenance: maintenanceStore(db),
    probes: probeStore(db),
    votes: voteStore(db),
    registries: registryStore(db),
    steady,
    unsaved: steady,
  };
}
