import { Type } from "@sinclair/typebox";
import type { Caller } from "../../kernel/callers/caller.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { typeBehaviors } from "./behaviors.ts";
import { Channels } from "./channels/channels.ts";
import { type ChannelNotification, Notifications } from "./channels/notifications.ts";
import { channelRoutes } from "./channels/routes.ts";
import { channelStore } from "./channels/store.ts";
import { Checks } from "./checks/checks.ts";
import { CheckQueue } from "./checks/queue.ts";
import { CheckSchedule } from "./checks/schedule.ts";
import { CHECK_RETENTION_MS } from "./domain.ts";
import { monitorExport } from "./export.ts";
import { HeartbeatChecks } from "./heartbeats/heartbeat-checks.ts";
import { Heartbeats } from "./heartbeats/heartbeats.ts";
import { Pings } from "./heartbeats/pings.ts";
import { heartbeatRoutes } from "./heartbeats/routes.ts";
import { SteadyHeartbeats } from "./heartbeats/steady.ts";
import { heartbeatRows, heartbeatStore, pingStore } from "./heartbeats/store.ts";
import { dayStore } from "./history/day-store.ts";
import { Days } from "./history/days.ts";
import { declareGauges } from "./history/gauges.ts";
import { INCIDENT_RETENTION_MS, Incidents } from "./incidents/lifecycle.ts";
import { monitorAlerting } from "./incidents/monitor-alerting.ts";
import { Reminders } from "./incidents/reminders.ts";
import { incidentRoutes } from "./incidents/routes.ts";
import { incidentStore } from "./incidents/store.ts";
import { monitorCard } from "./overview-card.ts";
import type { MonitorPorts } from "./ports.ts";
import { monitorRoutes } from "./routes.ts";
import { MonitorService } from "./service.ts";
import { createStatusPages } from "./status-pages/index.ts";
import { subscriberStore } from "./status-pages/subscriptions/store.ts";
import { CONFIRMATION_MS } from "./status-pages/subscriptions/subscriptions.ts";
import { checkStore, monitorRows, monitorStore } from "./store.ts";
import { createSuppression } from "./suppression/index.ts";
import { MonitorViews } from "./views.ts";

registerErrorFields({
  monitor_id: Type.String({
    description:
      "With `monitor_name_taken` and `monitor_slug_taken`: the id of the monitor that uses the name or slug.",
  }),
});

/** Stored checks of all monitors, about 4 GB: above it, the oldest are deleted before their 30 days end. */
const STORED_CHECKS_MAX = 100_000_000;

/** What the area offers to the server. */
export interface MonitorsArea extends ApiArea {
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  readonly card: OverviewCard;
  /** Number of open incidents of the caller's project, up to `COUNTED_MAX`. */
  readonly openIncidents: (caller: Caller) => number;
  /** Notifies the default channels of a project, each if it subscribes to the event. */
  readonly notifyProject: (tx: Tx, notification: Omit<ChannelNotification, "monitor">) => void;
  /** Writes what is in memory alone. */
  readonly finish: () => Promise<void>;
}

/** Sections of the API document. */
const PARTS = [
  {
    name: "Monitors",
    description:
      "Scheduled checks of URLs, and heartbeats that expect pings, with alerts by webhook, chat and e-mail, history and uptime.",
  },
  {
    name: "Status pages",
    description: "Public pages of monitors with their data, feeds and badges. They need no key.",
  },
];

/** Builds the area: monitors, heartbeats, incidents, alerts, maintenance and status pages. */
export function createMonitors(kernel: Kernel, outbound: OutboundClient, ports: MonitorPorts): MonitorsArea {
  const stores = createStores(kernel, outbound, ports);
  const days = new Days(stores.dayCounts);
  days.register(kernel);
  declareGauges(kernel, { ...stores, openIncidents: stores.incidents.openCountOfAll });
  const notifications = new Notifications(stores);
  const status = createStatusPages(kernel, { ...stores, days });
  const incidents = new Incidents({ ...stores, pages: status.ofIncidents }, notifications);
  const channels = new Channels(stores, notifications);
  const alerting = monitorAlerting(stores, { notifications, incidents, channels });
  const parts = { ...stores, alerting, days };
  const queue = new CheckQueue(parts);
  const heartbeats = new Heartbeats(parts);
  const behaviors = typeBehaviors(parts.monitors, queue, heartbeats);
  const { suppression, connectivity, maintenance } = createSuppression({
    ...parts,
    checkAt: (tx, monitor, at) => queue.checkAt(tx, monitor, at),
    recheck: (tx, monitor) => behaviors(monitor.settings.type).recheck(tx, monitor),
  });
  const checks = new Checks(parts, alerting, suppression, connectivity);
  new Reminders(parts, notifications, suppression);
  new CheckSchedule(parts, queue, checks, suppression);
  const heartbeatChecks = new HeartbeatChecks(parts, heartbeats, checks, suppression);
  const views = new MonitorViews(parts, { suppression, behaviors });
  const service = new MonitorService(parts, {
    behaviors,
    checks,
    heartbeats,
    queue,
    suppression,
    views,
    windows: maintenance.windows,
  });
  const pings = new Pings(parts, heartbeatChecks, (tx, owner, slug) => service.createPinged(tx, owner, slug));
  const findMonitor = (projectRef: number, monitorId: string) => service.find(projectRef, monitorId);
  const { steady, stopped } = parts;
  kernel.housekeeping.addPurge({
    name: "monitors.purge",
    rowsMax: 2_000,
    remove: (tx, rowsMax) =>
      Math.max(
        parts.checks.removeOld(tx, rowsMax, tx.now - CHECK_RETENTION_MS, STORED_CHECKS_MAX),
        parts.incidents.removeOld(tx, rowsMax, tx.now - INCIDENT_RETENTION_MS),
        parts.subscribers.removeUnconfirmed(tx, tx.now - CONFIRMATION_MS, rowsMax),
      ),
  });
  return {
    card: monitorCard(parts),
    finish: () => steady.finish(),
    notifyProject: (tx, notification) => notifications.notifyChannels(tx, { ...notification, monitor: null }),
    openIncidents: ({ project }) => parts.incidents.openCount(project.ref, COUNTED_MAX),
    parts: PARTS,
    alsoCalled: {
      pulse: ["monitors", "monitoring", "uptime", "checks", "heartbeats"],
      pages: ["status-pages"],
    },
    routes: (api) => [
      ...monitorRoutes(api, service),
      resourceRoutes(api, maintenance.resource),
      ...heartbeatRoutes(api, { heartbeats, pings, findMonitor }),
      ...incidentRoutes(api, incidents),
      ...channelRoutes(api, channels),
      ...status.routes(api),
    ],
    exported: monitorExport({ ...kernel, pings: parts.heartbeats }),
    resources: {
      name: "monitors",
      count: (projectRef) => parts.monitors.count(projectRef, COUNTED_MAX),
      projectDeleted: (tx, projectRef) => stopped.stop(tx, projectRef),
      removeRows: (tx, projectRef, rowsMax) => {
        const pages = status.removeRows(tx, projectRef, rowsMax);
        return pages === rowsMax ? pages : pages + service.removeRows(tx, projectRef, rowsMax - pages);
      },
    },
  };
}

/** Opens the stores of the area. What is in memory of steady heartbeats comes before the rows. */
function createStores(kernel: Kernel, outbound: OutboundClient, ports: MonitorPorts) {
  const { db } = kernel;
  const checks = checkStore(db);
  const [monitors, heartbeats] = [monitorRows(db), heartbeatRows(db)];
  const pings = pingStore(db);
  const steady = new SteadyHeartbeats(kernel, { monitors, heartbeats, checks, pings });
  return {
    ...kernel,
    ...ports,
    outbound,
    monitors: monitorStore(db, steady, monitors),
    checks,
    stopped: new StoppedProjects(db, "monitor_stopped_projects"),
    incidents: incidentStore(db),
    subscribers: subscriberStore(db),
    channels: channelStore(db),
    dayCounts: dayStore(db, steady),
    heartbeats: heartbeatStore(db, steady, heartbeats, pings),
    steady,
    unsaved: steady,
  };
}
