import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import type { ProjectContents } from "../../kernel/projects/resources.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { eventReader } from "./event-reader.ts";
import { pageExport } from "./export.ts";
import { type IncidentPages, incidentPages } from "./incident-pages.ts";
import type { PageDeps } from "./ports.ts";
import { PublicStatusPages } from "./public-pages.ts";
import { publicAdmission, publicRoutes } from "./public-routes.ts";
import { statusPageResource } from "./status-pages.ts";
import { pageStore } from "./store.ts";
import { registerAnnouncements } from "./subscriptions/announcements.ts";
import { subscriberImportRoutes } from "./subscriptions/import-routes.ts";
import { subscriberRemoval } from "./subscriptions/removal.ts";
import { subscriptionRoutes } from "./subscriptions/routes.ts";
import { subscriberStore } from "./subscriptions/store.ts";
import { CONFIRMATION_MS, Subscriptions } from "./subscriptions/subscriptions.ts";

/** What the area offers to the server. */
export interface StatusPagesArea extends ApiArea {
  readonly ofIncidents: IncidentPages;
  readonly contents: ProjectContents;
  readonly exported: AreaExport;
}

/** Builds the area: the management of status pages, and their public side. */
export function createStatusPages(kernel: Kernel, deps: PageDeps): StatusPagesArea {
  const pages = pageStore(kernel.db);
  const subscribers = subscriberStore(kernel.db);
  const reader = eventReader(deps.incidents, deps.maintenance);
  const subscriptions = new Subscriptions({ ...kernel, ...deps, subscribers });
  const common = { ...kernel, ...deps, pages, subscribers, eventReader: reader, subscriptions };
  registerAnnouncements(common);
  const publicPages = new PublicStatusPages(common);
  const invalidate = (tx: Tx, slug: string): void => publicPages.invalidate(tx, slug);
  const removal = subscriberRemoval(common);
  const statusPages = statusPageResource({ ...common, removal, invalidate });
  const admit = publicAdmission(kernel.clock);
  const style = deps.statusStyle;
  kernel.housekeeping.addPurge({
    name: "status_pages.purge",
    rowsMax: 2_000,
    remove: (tx, rowsMax) => subscribers.removeUnconfirmed(tx, tx.now - CONFIRMATION_MS, rowsMax),
  });
  return {
    parts: [
      {
        name: "Status pages",
        description: "Public pages of monitors with their data, feeds and badges. They need no key.",
      },
    ],
    alsoCalled: { pages: ["status-pages"] },
    ofIncidents: incidentPages(common),
    routes: (api) => [
      resourceRoutes(api, statusPages),
      publicRoutes(api, publicPages, admit, style),
      subscriberImportRoutes(api, { subscriptions, find: statusPages.find }),
      subscriptionRoutes(api, { pages: publicPages, stored: pages, subscriptions, style, admit }),
    ],
    exported: pageExport,
    contents: {
      removeRows(tx, projectRef, rowsMax) {
        publicPages.invalidateProject(tx, projectRef);
        const removed = pages.removeOfProject(tx, projectRef, rowsMax);
        const left = removed + subscribers.removeOfProject(tx, projectRef, rowsMax - removed);
        return left + subscribers.removeUnsubscribedOfProject(tx, projectRef, rowsMax - left);
      },
    },
  };
}
