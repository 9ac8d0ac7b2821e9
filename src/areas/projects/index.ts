import { errorText } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import { countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectDirectory } from "./directory.ts";
import { projectExport } from "./export.ts";
import { projectRoutes } from "./routes.ts";
import { Overviews, type ProjectDeps, ProjectRemoval, ProjectService } from "./service.ts";

export { openProjectDirectory } from "./directory.ts";

/** What projects provide to the server. */
export interface ProjectsArea extends ApiArea {
  readonly card: OverviewCard;
  readonly exportedTable: typeof projectExport;
  /** The removal of the projects of deleted accounts. */
  readonly ofDeletedAccounts: Pick<ProjectRemoval, "deleteSomeOf" | "removeAllOf">;
  /** Interrupts the removal of deleted projects. Call before the scheduler stops. */
  readonly stop: () => void;
  /** Writes what is only in memory, if the disk allows it. Call before the process exits. */
  readonly finish: () => Promise<void>;
}

/** Builds the area on its directory. */
export function createProjects(
  kernel: Kernel,
  directory: ProjectDirectory,
  deps: Pick<ProjectDeps, "accounts" | "resources" | "contents" | "trail"> & { readonly tiers: Tiers },
): ProjectsArea {
  const limit = new TierLimit(kernel.db, deps.tiers, "projects", "project_limit_exceeded");
  const shared = { ...kernel, ...deps, directory };
  const overviews = new Overviews(shared);
  const removal = new ProjectRemoval(shared, overviews);
  const service = new ProjectService(shared, overviews, removal, limit);
  const kinds = deps.resources.map(({ name }) => name);
  return {
    parts: [
      {
        name: "Projects",
        description:
          "Namespaces. The key of a request determines its project: a key of a project works in that project, any other key in the default project.",
      },
    ],
    routes: (api) => projectRoutes(api, service, kinds),
    card: {
      area: "projects",
      schema: countsSchema(["total"]),
      read: ({ account, projectBound }) => ({
        total: projectBound ? 1 : directory.store.countOfAccount(account.ref),
      }),
    },
    ofDeletedAccounts: removal,
    exportedTable: projectExport,
    stop: () => removal.stop(),
    finish: () =>
      directory.activity.finish().catch((error) => {
        kernel.log.warn("the last activity of projects could not be written", { error: errorText(error) });
      }),
  };
}
