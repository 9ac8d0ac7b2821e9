import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import { clockText } from "../../../kernel/time/readable.ts";
import type { MonitorNotification, OpenIncident } from "../alerting.ts";
import { factsOf } from "../facts.ts";
import { settle } from "../history/standing.ts";
import { maintenanceResource } from "../maintenance/maintenance.ts";
import type { MaintenanceRow, MaintenanceStore } from "../maintenance/store.ts";
import { MaintenanceWindows } from "../maintenance/windows.ts";
import type { AreaDeps } from "../ports.ts";
import type { MonitorRow, UnsavedMonitors } from "../store.ts";
import { Connectivity, type Outage } from "./connectivity.ts";
import { suppressionStore } from "./store.ts";
import { FLAPPING_CHANGES, FLAPPING_END_MS, FLAPPING_WITHIN_MS, Suppression } from "./suppression.ts";

/** What suppression needs of the other parts of the area. */
interface SuppressionDeps extends AreaDeps {
  readonly unsaved: Pick<UnsavedMonitors, "release">;
  readonly maintenance: MaintenanceStore;
  /** Reschedules the next check of a monitor. */
  readonly checkAt: (tx: Tx, monitor: { ref: number; accountRef: number; url: string }, at: number) => void;
  /** Reports a failure of an active monitor that was suppressed until now. */
  readonly recheck: (tx: Tx, monitor: MonitorRow) => void;
}

/** Builds everything that suppresses alerts. */
export function createSuppression(deps: SuppressionDeps) {
  const { alerting } = deps;
  const store = suppressionStore(deps.db);
  const connectivity = new Connectivity({
    ...deps,
    store,
    notifyChannels: (tx, projectRef, outage) =>
      alerting.notifyChannels(
        tx,
        outageNotification(projectRef, outage, { now: tx.now, zone: deps.timeZoneOf(projectRef) }),
      ),
  });
  const windows = new MaintenanceWindows({
    ...deps,
    recheck(tx, ref) {
      const monitor = deps.monitors.monitor(ref);
      if (monitor?.settings.active) deps.recheck(tx, monitor);
    },
    settle(tx, ref, isObserved) {
      const isActive = deps.monitors.monitor(ref)?.settings.active === true;
      settle(deps, tx, ref, isObserved && isActive);
    },
    notifyChannels(tx, event, row) {
      const time = { now: tx.now, zone: deps.timeZoneOf(row.projectRef) };
      alerting.notifyChannels(tx, maintenanceNotification(event, row, time));
    },
  });
  const suppression = new Suppression({
    ...deps,
    store,
    connectivity,
    maintenance: windows,
    notifyChannels(tx, event, monitor) {
      const incident = alerting.openIncidentOf(monitor.ref);
      alerting.notifyChannels(tx, flappingNotification(event, monitor, incident));
    },
  });
  const resource = maintenanceResource(deps, deps.maintenance, windows);
  return { suppression, connectivity, maintenance: { windows, resource } };
}

/** The time at which a text is written, epoch milliseconds, and the time zone of the times in it. */
interface TextTime {
  readonly now: number;
  readonly zone: string;
}

function outageNotification(
  projectRef: number,
  outage: Outage,
  { now, zone }: TextTime,
): MonitorNotification {
  const [from, to] = [isoTime(outage.from), isoTime(outage.to)];
  const [start, end] = [outage.from, outage.to].map((at) => clockText(at, now, zone));
  return {
    projectRef,
    monitor: null,
    event: "observer.offline",
    title: "The monitoring server",
    text: `Ninefold was offline from ${start} to ${end}; checks in this time are ignored`,
    facts: { from, to },
  };
}

function maintenanceNotification(
  event: "maintenance.started" | "maintenance.ended",
  { projectRef, id, title, message, ...row }: MaintenanceRow,
  { now, zone }: TextTime,
): MonitorNotification {
  const [starts_at, ends_at] = [isoTime(row.starts_at), isoTime(row.ends_at)];
  return {
    projectRef,
    monitor: null,
    event,
    title,
    text:
      event === "maintenance.ended"
        ? "maintenance has ended"
        : `maintenance until ${clockText(row.ends_at, now, zone)}`,
    facts: { maintenance_id: id, title, message, starts_at, ends_at },
  };
}

function flappingNotification(
  event: "monitor.down" | "monitor.up" | "monitor.flapping",
  monitor: MonitorRow,
  incident: OpenIncident | null,
): MonitorNotification {
  const [within, stable] = [FLAPPING_WITHIN_MS / 60_000, FLAPPING_END_MS / 60_000];
  const text =
    event === "monitor.flapping"
      ? `${FLAPPING_CHANGES} changes within ${within} minutes: no alerts until the status is stable for ${stable} minutes`
      : `stable for ${stable} minutes`;
  const { projectRef } = monitor;
  return { projectRef, monitor: factsOf(monitor), event, text, incidentId: incident?.id ?? null };
}
