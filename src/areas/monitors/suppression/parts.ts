import { isoTime } from "../../../kernel/time/date-time.ts";
import type { Notice, Notices } from "../alerts/notifications.ts";
import type { CheckSchedule } from "../checks/jobs.ts";
import type { Heartbeats } from "../heartbeats/heartbeats.ts";
import type { IncidentRow } from "../incidents/store.ts";
import { MaintenanceService } from "../maintenance/maintenance.ts";
import { type MaintenanceRow, maintenanceStore } from "../maintenance/store.ts";
import type { MonitorParts } from "../ports.ts";
import type { MonitorRow } from "../store.ts";
import { Observer, type Outage } from "./observer.ts";
import { quietStore } from "./store.ts";
import { FLAPPING_CHANGES, FLAPPING_WITHIN_MS, Quiet, SETTLED_MS } from "./suppression.ts";

/** Builds what keeps alerts quiet. `by`: what looks at monitors; it is built later. */
export function quietParts(
  parts: MonitorParts,
  notices: Pick<Notices, "tell">,
  by: { readonly schedule: () => CheckSchedule; readonly heartbeats: () => Heartbeats },
) {
  const quiet = quietStore(parts.db);
  const observer = new Observer({
    ...parts,
    quiet,
    checkAt: (tx, monitor, at) => by.schedule().checkAt(tx, monitor, at),
    tell: (tx, projectRef, outage) => notices.tell(tx, outageNotice(projectRef, outage)),
  });
  const maintenance = new MaintenanceService({
    ...parts,
    maintenance: maintenanceStore(parts.db),
    look(tx, ref) {
      const monitor = parts.monitors.monitor(ref);
      if (monitor === null || !monitor.settings.active) return;
      if (monitor.settings.type === "heartbeat") by.heartbeats().lookNow(tx, ref);
      // One that is well has nothing to tell, and work that recurs often must not hurry its checks.
      else if (monitor.consecutiveFailures > 0)
        by.schedule().checkAt(tx, { ...monitor, url: monitor.settings.url }, tx.now);
    },
    tell: (tx, event, row) => notices.tell(tx, maintenanceNotice(event, row)),
  });
  const calm = new Quiet({
    ...parts,
    quiet,
    observer,
    maintenance,
    tell: (tx, event, monitor) =>
      notices.tell(tx, flappingNotice(event, monitor, parts.incidents.openOf(monitor.ref))),
  });
  return { quiet: calm, observer, maintenance };
}

function outageNotice(projectRef: number, { from, to }: Outage): Notice {
  const [began, ended] = [isoTime(from), isoTime(to)];
  return {
    projectRef,
    monitor: null,
    event: "observer.offline",
    title: "The server that watches",
    text: `its own line was cut from ${began} to ${ended}; failures in that time count for nothing`,
    facts: { from: began, to: ended },
  };
}

function maintenanceNotice(event: "maintenance.started" | "maintenance.ended", row: MaintenanceRow): Notice {
  const { projectRef, maintenanceId: maintenance_id, title, message } = row;
  const [starts_at, ends_at] = [isoTime(row.starts_at), isoTime(row.ends_at)];
  const text = event === "maintenance.ended" ? "planned work has ended" : `planned work until ${ends_at}`;
  const facts = { maintenance_id, title, message, starts_at, ends_at };
  return { projectRef, monitor: null, event, title, text, facts };
}

function flappingNotice(
  event: "monitor.down" | "monitor.up" | "monitor.flapping",
  monitor: MonitorRow,
  incident: IncidentRow | null,
): Notice {
  const { projectRef } = monitor;
  const [changes, minutes, rest] = [FLAPPING_CHANGES, FLAPPING_WITHIN_MS / 60_000, SETTLED_MS / 60_000];
  const text =
    event === "monitor.flapping"
      ? `${changes} changes within ${minutes} minutes: silence until it has stayed as it is for ${rest} minutes`
      : `it has stayed so for ${rest} minutes`;
  return { projectRef, monitor, event, text, incidentId: incident?.incidentId ?? null };
}
