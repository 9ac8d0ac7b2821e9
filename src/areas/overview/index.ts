import type { ApiArea } from "../../kernel/http/api.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type OverviewDeps, overviewRoutes } from "./routes.ts";

/** Builds the area: a summary of all other areas. */
export function createOverview({ clock }: { readonly clock: Clock }, deps: OverviewDeps): ApiArea {
  return {
    parts: [{ name: "Overview", description: "A summary of all areas." }],
    routes: (api) => overviewRoutes(api, deps, clock),
  };
}
