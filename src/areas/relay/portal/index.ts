import type { Api } from "../../../kernel/http/api.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { Endpoints } from "../endpoints/endpoints.ts";
import type { Recoveries } from "../resends/recoveries.ts";
import { type LinkDeps, PortalLinks } from "./links.ts";
import { Portal } from "./portal.ts";
import {
  portalChangeRoutes,
  portalDeliveryRoutes,
  portalEndpointRoutes,
  portalLinkRoutes,
  portalRecoverRoutes,
  portalUseRoutes,
} from "./routes.ts";
import { portalStore } from "./store.ts";

/** Expired links removed in one unit of work. */
const PURGE_SLICE_ROWS = 500;

type PortalDeps = ConstructorParameters<typeof Portal>[0] & {
  readonly endpoints: Endpoints;
  readonly recoveries: Recoveries;
};

/** Builds the portal, in which customers of an account manage their own endpoints. */
export function createPortal(kernel: Kernel, linkDeps: LinkDeps, deps: PortalDeps) {
  const store = portalStore(kernel.db);
  const links = new PortalLinks({ ...kernel, ...linkDeps, links: store });
  const portal = new Portal(deps);
  kernel.housekeeping.addPurge({
    name: "relay.portal.purge",
    rowsMax: PURGE_SLICE_ROWS,
    remove: (tx, rowsMax) => store.removeExpired(tx, tx.now, rowsMax),
  });
  return {
    authenticator: links,
    routes: (api: Api) =>
      [
        portalLinkRoutes(api, links),
        portalEndpointRoutes(api, links, portal),
        portalChangeRoutes(api, deps.endpoints, portal),
        portalUseRoutes(api, deps.endpoints, portal),
        portalRecoverRoutes(api, deps.recoveries, portal),
        portalDeliveryRoutes(api, portal),
      ] as const,
    /** Removes at most `rowsMax` links of a deleted project. @returns their number. */
    removeRows: (tx: Tx, projectRef: number, rowsMax: number): number =>
      store.removeOfProject(tx, projectRef, rowsMax),
  };
}
