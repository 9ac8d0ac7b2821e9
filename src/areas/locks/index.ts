import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { lockRoutes } from "./routes.ts";
import { LockService } from "./service.ts";
import { lockStore } from "./store.ts";

/** What locks offer to the rest of the house. */
export interface LocksArea extends ApiArea {
  /** Answers all waiters with 503. For the end of the process. */
  readonly refuseWaiters: () => void;
  readonly resources: ProjectResources;
  /** Stops the timers. For the end of the process: what is held stays held. */
  readonly finish: () => void;
}

/** Builds the area, with the locks that were held when the last process ended. */
export function createLocks(kernel: Kernel): LocksArea {
  const service = new LockService({ ...kernel, store: lockStore(kernel.db) });
  return {
    parts: [
      {
        name: "Locks",
        description:
          "Distributed locks with first-come-first-served waiters, automatic expiry, and fencing tokens that rise for ever.",
      },
    ],
    routes: (api) => lockRoutes(api, service),
    refuseWaiters: () => service.refuseWaiters(),
    resources: {
      name: "locks",
      count: (projectRef) => service.count(projectRef),
      projectDeleted: (tx, projectRef) => service.refuseProject(tx, projectRef),
      removeRows: (tx, projectRef, rowsMax) => service.removeLocks(tx, projectRef, rowsMax),
    },
    finish: () => service.finish(),
  };
}
