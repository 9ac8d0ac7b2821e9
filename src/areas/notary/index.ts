import type { Http } from "../../kernel/http/http.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { notaryRoutes } from "./routes.ts";
import { NotaryService } from "./service.ts";
import { NotaryStore } from "./store.ts";

/** What the notary offers to the rest of the house. */
export interface NotaryArea {
  readonly declareRoutes: (http: Http) => void;
  readonly resources: ProjectResources;
}

/** Builds the area: chains of signed receipts, one per project. */
export function createNotary(kernel: Kernel): NotaryArea {
  const { db, vault, ids } = kernel;
  const store = new NotaryStore(db);
  const notary = new NotaryService({ store, vault, ids });
  return {
    declareRoutes: (http) => notaryRoutes(http, notary),
    resources: {
      name: "chains",
      count: (projectRef) => (store.chainOf(projectRef) === null ? 0 : 1),
      removeRows: (tx, projectRef, rowsMax) => notary.remove(tx, projectRef, rowsMax),
    },
  };
}
