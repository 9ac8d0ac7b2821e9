import type { Api } from "../../../kernel/http/api.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import { resourceRoutes } from "../../../kernel/resources/routes.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Days } from "../history/days.ts";
import type { IncidentStore } from "../incidents/store.ts";
import { maintenanceStore } from "../maintenance/store.ts";
import type { MonitorParts } from "../ports.ts";
import { eventReader } from "./event-reader.ts";
import { eventStore } from "./event-store.ts";
import { incidentPages } from "./incident-pages.ts";
import { PublicStatusPages } from "./public-pages.ts";
import { publicAdmission, publicRoutes } from "./public-routes.ts";
import { statusPageResource } from "./status-pages.ts";
import { pageStore } from "./store.ts";
import { registerAnnouncements } from "./subscriptions/announcements.ts";
import { subscriptionRoutes } from "./subscriptions/routes.ts";
import type { SubscriberStore } from "./subscriptions/store.ts";
import { Subscriptions } from "./subscriptions/subscriptions.ts";

/** Parts of the area that status pages use. */
type AreaParts = Pick<
  MonitorParts,
  | "monitors"
  | "checks"
  | "stopped"
  | "owners"
  | "tiers"
  | "statusStyle"
  | "projectIdOf"
  | "outbox"
  | "publicUrl"
> & {
  readonly incidents: IncidentStore;
  readonly subscribers: SubscriberStore;
  readonly days: Days;
};

/** Builds status pages: their management and their public side. */
export function createStatusPages(kernel: Kernel, parts: AreaParts) {
  const maintenance = maintenanceStore(kernel.db);
  const reader = eventReader({
    events: eventStore(kernel.db),
    incidents: parts.incidents,
    maintenance,
  });
  const pages = pageStore(kernel.db);
  const subscriptions = new Subscriptions({ ...kernel, ...parts });
  const common = { ...kernel, ...parts, pages, eventReader: reader, subscriptions };
  registerAnnouncements(common);
  const publicPages = new PublicStatusPages(common);
  const invalidate = (tx: Tx, slug: string): void => publicPages.invalidate(tx, slug);
  const statusPages = statusPageResource({ ...common, invalidate });
  const admit = publicAdmission(kernel.clock);
  const style = parts.statusStyle;
  return {
    ofIncidents: incidentPages({ ...common, maintenance }),
    routes: (api: Api) => [
      resourceRoutes(api, statusPages),
      publicRoutes(api, publicPages, admit, style),
      subscriptionRoutes(api, { pages: publicPages, stored: pages, subscriptions, style, admit }),
    ],
    /** Removes at most `rowsMax` pages and subscribers of a deleted project. Returns how many. */
    removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
      publicPages.invalidateProject(tx, projectRef);
      const removed = pages.removeOfProject(tx, projectRef, rowsMax);
      return removed + parts.subscribers.removeOfProject(tx, projectRef, rowsMax - removed);
    },
  };
}
