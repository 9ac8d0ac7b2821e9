import { errorText } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { TierBound } from "../../kernel/tier-bounds.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { Overviews, ProjectRemoval } from "./contents.ts";
import { ProjectDirectory } from "./directory.ts";
import type { ProjectAccounts } from "./ports.ts";
import { projectRoutes } from "./routes.ts";
import { ProjectService } from "./service.ts";

/** What projects offer to the rest of the house. */
export interface ProjectsArea extends ApiArea {
  /** Interrupts the removal of deleted projects. For the end of the process, before the scheduler stops. */
  readonly stop: () => void;
  /** Writes down what is only in memory, as far as the disk lets it. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Opens the directory of projects, for every other area to ask. */
export function openProjectDirectory(kernel: Kernel): ProjectDirectory {
  return new ProjectDirectory(kernel);
}

/** Builds the area on its directory. `resources`: what the other areas keep in projects. */
export function createProjects(
  kernel: Kernel,
  directory: ProjectDirectory,
  ports: { accounts: ProjectAccounts; resources: readonly ProjectResources[]; tiers: Tiers },
): ProjectsArea {
  const { db, writer, log } = kernel;
  const { accounts, resources } = ports;
  const kinds = resources.map(({ name }) => name);
  const bound = new TierBound(db, ports.tiers, "projects", "project_limit_exceeded");
  const removal = new ProjectRemoval({ ...kernel, directory, resources });
  const overviews = new Overviews({ ...kernel, resources, accounts, directory });
  const service = new ProjectService({ directory, accounts, resources, overviews, removal, bound });
  return {
    parts: [
      {
        name: "Projects",
        description:
          "Namespaces. Which project a request works in follows from its key: a project's key in that project, every other key in the default one.",
      },
    ],
    routes: (api) => projectRoutes(api, service, kinds),
    stop: () => removal.stop(),
    finish: () =>
      directory.activity
        .finish(writer)
        .catch((error) =>
          log.warn("the last activity of projects could not be written", { error: errorText(error) }),
        ),
  };
}
