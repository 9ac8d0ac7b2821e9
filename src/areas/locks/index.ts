import type { Caller } from "../../kernel/http/access/caller.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { figures } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { lockRoutes } from "./routes.ts";
import { LockService } from "./service.ts";
import { lockStore } from "./store.ts";

/** Builds the area, with the locks that were held when the last process ended. */
export function createLocks(kernel: Kernel) {
  const service = new LockService({ ...kernel, store: lockStore(kernel.db) });
  const resources: ProjectResources = {
    name: "locks",
    count: (projectRef) => service.count(projectRef),
    projectDeleted: (tx, projectRef) => service.refuseProject(tx, projectRef),
    removeRows: (tx, projectRef, rowsMax) => service.removeLocks(tx, projectRef, rowsMax),
  };
  return {
    parts: [
      {
        name: "Locks",
        description:
          "Distributed locks with first-come-first-served waiters, automatic expiry, and fencing tokens that rise for ever.",
      },
    ],
    alsoCalled: { latch: ["locks", "lock", "mutex"], acquire: ["lock"], release: ["unlock"] },
    routes: (api: Api) => lockRoutes(api, service),
    /** Answers all waiters with 503. For the end of the process. */
    refuseWaiters: () => service.refuseWaiters(),
    resources,
    card: {
      area: "latch",
      schema: figures(["held", "waiting"]),
      read: ({ project }: Caller) => service.figures(project.ref),
    },
    /** Stops the timers. For the end of the process: what is held stays held. */
    finish: () => service.finish(),
  };
}
