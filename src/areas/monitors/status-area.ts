import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Days } from "./days.ts";
import { factStore } from "./fact-store.ts";
import { declareGauges } from "./gauges.ts";
import { maintenanceStore } from "./maintenance-store.ts";
import { pageFacts } from "./page-facts.ts";
import { pageRoutes } from "./page-routes.ts";
import { pageStore } from "./page-store.ts";
import { Pages } from "./pages.ts";
import type { MonitorParts } from "./ports.ts";
import { StatusPages } from "./status-pages.ts";
import { statusRoutes } from "./status-routes.ts";

/** What status pages need of the rest of the area. */
type Around = Pick<
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
export function createStatusPages(kernel: Kernel, around: Around) {
  const facts = pageFacts({
    facts: factStore(kernel.db),
    incidents: around.incidents,
    maintenance: maintenanceStore(kernel.db),
  });
  const days = new Days(around.dailies, facts);
  days.register(kernel);
  declareGauges(kernel, { ...around, facts });
  const pages = pageStore(kernel.db);
  const common = { ...kernel, ...around, pages, days, facts };
  const status = new StatusPages(common);
  const changedAt = (tx: Tx, slug: string): void => status.changedAt(tx, slug);
  const owned = new Pages({ ...common, changedAt });
  return {
    routes: (api: Api) => [
      ...pageRoutes(api, owned),
      statusRoutes(api, status, kernel.clock, around.statusStyle),
    ],
    /** Removes at most `rowsMax` pages of a deleted project. Returns how many. */
    removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
      status.removedOf(tx, projectRef);
      return pages.removeOfProject(tx, projectRef, rowsMax);
    },
  };
}
