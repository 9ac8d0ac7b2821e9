import type { Caller } from "../../kernel/callers/caller.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { countsSchema } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { lockExport } from "./export.ts";
import { lockRoutes } from "./routes.ts";
import { LockService } from "./service.ts";
import { lockStore } from "./store.ts";

/** Creates the area and restores the locks that were held when the last process ended. */
export function createLocks(kernel: Kernel) {
  const service = new LockService({ ...kernel, store: lockStore(kernel.db) });
  const resources: ProjectResources = {
    name: "locks",
    count: (projectRef) => service.count(projectRef),
    projectDeleted: (tx, projectRef) => service.rejectProjectWaiters(tx, projectRef),
    removeRows: (tx, projectRef, rowsMax) => service.removeLocks(tx, projectRef, rowsMax),
  };
  return {
    parts: [
      {
        name: "Locks",
        description:
          "Distributed locks with a first-come-first-served queue, automatic expiry and monotonically increasing fencing tokens.",
      },
    ],
    alsoCalled: { latch: ["locks", "lock", "mutex"], acquire: ["lock"], release: ["unlock"] },
    routes: (api: Api) => lockRoutes(api, service),
    /** Rejects all waiters with 503 at the end of the process. */
    rejectWaiters: () => service.rejectWaiters(),
    resources,
    exported: lockExport((projectRef) => service.rows(projectRef)),
    card: {
      area: "latch",
      schema: countsSchema(["held", "waiting"]),
      read: ({ project }: Caller) => service.counts(project.ref),
    },
    /** Stops the timers at the end of the process. Held locks stay held. */
    finish: () => service.finish(),
  };
}
