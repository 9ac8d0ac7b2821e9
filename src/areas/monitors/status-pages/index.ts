import type { Api } from "../../../kernel/http/api.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { Days } from "../history/days.ts";
import { declareGauges } from "../history/gauges.ts";
import { maintenanceStore } from "../maintenance/store.ts";
import type { MonitorParts } from "../ports.ts";
import { eventReader } from "./event-reader.ts";
import { eventStore } from "./event-store.ts";
import { PublicStatusPages } from "./public-pages.ts";
import { publicRoutes } from "./public-routes.ts";
import { pageRoutes } from "./routes.ts";
import { StatusPages } from "./status-pages.ts";
import { pageStore } from "./store.ts";

/** Parts of the area that status pages use. */
type AreaParts = Pick<
  MonitorParts,
  | "monitors"
  | "checks"
  | "dayCounts"
  | "stopped"
  | "owners"
  | "tiers"
  | "statusStyle"
  | "projectIdOf"
  | "incidents"
>;

/** Builds status pages: their management, their public side, and the daily uptime that they show. */
export function createStatusPages(kernel: Kernel, parts: AreaParts) {
  const reader = eventReader({
    events: eventStore(kernel.db),
    incidents: parts.incidents,
    maintenance: maintenanceStore(kernel.db),
  });
  const days = new Days(parts.dayCounts);
  days.register(kernel);
  declareGauges(kernel, { ...parts, eventReader: reader });
  const pages = pageStore(kernel.db);
  const common = { ...kernel, ...parts, pages, days, eventReader: reader };
  const publicPages = new PublicStatusPages(common);
  const invalidate = (tx: Tx, slug: string): void => publicPages.invalidate(tx, slug);
  const statusPages = new StatusPages({ ...common, invalidate });
  return {
    routes: (api: Api) => [
      ...pageRoutes(api, statusPages),
      publicRoutes(api, publicPages, kernel.clock, parts.statusStyle),
    ],
    /** Removes at most `rowsMax` pages of a deleted project. Returns the number of removed pages. */
    removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
      publicPages.invalidateProject(tx, projectRef);
      return pages.removeOfProject(tx, projectRef, rowsMax);
    },
  };
}
