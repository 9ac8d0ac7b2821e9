import type { Api } from "../../../kernel/http/api.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { Days } from "../history/days.ts";
import { declareGauges } from "../history/gauges.ts";
import { maintenanceStore } from "../maintenance/store.ts";
import type { MonitorParts } from "../ports.ts";
import { factStore } from "./fact-store.ts";
import { pageFacts } from "./facts.ts";
import { PublicStatusPages } from "./public-pages.ts";
import { statusRoutes } from "./public-routes.ts";
import { pageRoutes } from "./routes.ts";
import { StatusPages } from "./status-pages.ts";
import { pageStore } from "./store.ts";

/** What status pages need of the rest of the area. */
type AreaParts = Pick<
  MonitorParts,
  | "monitors"
  | "checks"
  | "dailies"
  | "stopped"
  | "owners"
  | "tiers"
  | "statusStyle"
  | "projectIdOf"
  | "incidents"
>;

/** The status pages of an area that watches: what owners do with them, what everybody sees, and the daily figures. */
export function createStatusPages(kernel: Kernel, around: AreaParts) {
  const facts = pageFacts({
    facts: factStore(kernel.db),
    incidents: around.incidents,
    maintenance: maintenanceStore(kernel.db),
  });
  const days = new Days(around.dailies);
  days.register(kernel);
  declareGauges(kernel, { ...around, facts });
  const pages = pageStore(kernel.db);
  const common = { ...kernel, ...around, pages, days, facts };
  const status = new PublicStatusPages(common);
  const invalidate = (tx: Tx, slug: string): void => status.invalidate(tx, slug);
  const owned = new StatusPages({ ...common, invalidate });
  return {
    routes: (api: Api) => [
      ...pageRoutes(api, owned),
      statusRoutes(api, status, kernel.clock, around.statusStyle),
    ],
    /** Removes at most `rowsMax` pages of a deleted project. Returns how many. */
    removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
      status.invalidateProject(tx, projectRef);
      return pages.removeOfProject(tx, projectRef, rowsMax);
    },
  };
}
