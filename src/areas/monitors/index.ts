import "./errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { registerPurge } from "../../kernel/removal.ts";
import { StoppedProjects } from "../../kernel/stopped-projects.ts";
import { TierBound } from "../../kernel/tier-bounds.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { CheckStore } from "./check-store.ts";
import { CHECKS_KEPT_MS, Checks, declareCheckCounts } from "./checks.ts";
import { CheckSchedule } from "./jobs.ts";
import type { MonitorOwners, Notifier } from "./ports.ts";
import { monitorRoutes } from "./routes.ts";
import { MonitorService } from "./service.ts";
import { MonitorStore } from "./store.ts";

/** Checks kept in all, about 4 GB: beyond that the oldest go before their 30 days are over. */
const CHECKS_KEPT_MAX = 100_000_000;

/** What monitors offer to the rest of the server. */
export interface MonitorsArea extends ApiArea {
  readonly resources: ProjectResources;
}

/** What monitors need from the other areas and the kernel's optional parts. */
export interface MonitorPorts {
  readonly owners: MonitorOwners;
  readonly notifier: Notifier;
  readonly outbox: Outbox;
  readonly tiers: Tiers;
}

/** Builds the area: scheduled checks of URLs, and their alerts. */
export function createMonitors(kernel: Kernel, outbound: OutboundClient, ports: MonitorPorts): MonitorsArea {
  const { db, clock, ids, vault, scheduler, metrics } = kernel;
  const { owners, tiers, outbox, notifier } = ports;
  const monitors = new MonitorStore(db);
  const checkStore = new CheckStore(db);
  const stopped = new StoppedProjects(db, "monitor_stopped_projects");
  const counts = declareCheckCounts(metrics);
  const alerting = { notifier, owners, outbox };
  const checks = new Checks({ ...alerting, monitors, checks: checkStore, outbound, clock, vault, counts });
  const schedule = new CheckSchedule({ scheduler, clock, monitors, stopped, checks, owners, tiers });
  const rules = { policy: outbound.policy, vault, tiers, canMail: outbox.available };
  const bound = new TierBound(db, tiers, "monitors", "monitor_limit_exceeded");
  const service = new MonitorService({ monitors, checkStore, checks, schedule, rules, ids, bound });
  registerPurge(kernel, {
    name: "monitors.purge",
    schedule: "41 * * * *",
    rowsMax: 2_000,
    remove: (tx, rowsMax) => checkStore.removeOld(tx, tx.now - CHECKS_KEPT_MS, CHECKS_KEPT_MAX, rowsMax),
  });
  return {
    parts: [
      {
        name: "Monitors",
        description: "Scheduled checks of URLs, with alerts by webhook and e-mail, history and uptime.",
      },
    ],
    routes: (api) => monitorRoutes(api, service),
    resources: {
      name: "monitors",
      count: (projectRef) => monitors.count(projectRef),
      projectDeleted: (tx, projectRef) => stopped.stop(tx, projectRef),
      // Hours go first, then the monitor that they belong to.
      removeRows(tx, projectRef, rowsMax) {
        let removed = 0;
        for (const ref of monitors.ofProject(projectRef, rowsMax)) {
          removed += checkStore.removeHours(tx, ref, rowsMax - removed);
          if (removed >= rowsMax) return removed;
          schedule.end(tx, ref);
          checkStore.remove(tx, ref);
          monitors.remove(tx, ref);
          removed += 1;
          if (removed >= rowsMax) return removed;
        }
        stopped.forget(tx, projectRef);
        return removed;
      },
    },
  };
}
