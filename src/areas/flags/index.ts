import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { figures, type OverviewCard } from "../../kernel/overview-card.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { flagRoutes } from "./routes.ts";
import { FlagService } from "./service.ts";
import { flagStore } from "./store.ts";

/** What flags offer to the rest of the house. */
export interface FlagsArea extends ApiArea {
  readonly resources: ProjectResources;
  readonly card: OverviewCard;
}

/** Builds the area: boolean feature flags, per project. */
export function createFlags({ db }: Kernel): FlagsArea {
  const store = flagStore(db);
  const flags = new FlagService(store);
  return {
    resources: {
      name: "flags",
      count: (projectRef) => store.count(projectRef),
      removeRows: (tx, projectRef, rowsMax) => flags.removeRows(tx, projectRef, rowsMax),
    },
    card: {
      area: "gate",
      schema: figures(["total", "on"]),
      read: ({ project }) => store.figures(project.ref) ?? { total: 0, on: 0 },
    },
    parts: [{ name: "Flags", description: "Boolean feature flags of a project, evaluated from memory." }],
    alsoCalled: { gate: ["flags", "features", "feature-flags", "toggles"] },
    routes: (api) => flagRoutes(api, flags),
  };
}
