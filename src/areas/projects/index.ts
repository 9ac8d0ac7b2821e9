import { errorText } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import { countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectDirectory } from "./directory.ts";
import { projectRoutes } from "./routes.ts";
import { Overviews, type ProjectDeps, ProjectRemoval, ProjectService } from "./service.ts";

export { openProjectDirectory } from "./directory.ts";

/** What projects offer to the rest of the house. */
export interface ProjectsArea extends ApiArea {
  readonly card: OverviewCard;
  /** Interrupts the removal of deleted projects. For the end of the process, before the scheduler stops. */
  readonly stop: () => void;
  /** Writes down what is only in memory, as far as the disk lets it. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Builds the area on its directory. */
export function createProjects(
  kernel: Kernel,
  directory: ProjectDirectory,
  ports: Pick<ProjectDeps, "accounts" | "resources" | "trail"> & { readonly tiers: Tiers },
): ProjectsArea {
  const bound = new TierLimit(kernel.db, ports.tiers, "projects", "project_limit_exceeded");
  const deps = { ...kernel, ...ports, directory };
  const removal = new ProjectRemoval(deps);
  const service = new ProjectService(deps, new Overviews(deps), removal, bound);
  const kinds = ports.resources.map(({ name }) => name);
  return {
    parts: [
      {
        name: "Projects",
        description:
          "Namespaces. Which project a request works in follows from its key: a project's key in that project, every other key in the default one.",
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
    stop: () => removal.stop(),
    finish: () =>
      directory.activity.finish().catch((error) => {
        kernel.log.warn("the last activity of projects could not be written", { error: errorText(error) });
      }),
  };
}
