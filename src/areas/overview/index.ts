import type { ApiArea } from "../../kernel/http/api.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type OverviewParts, overviewRoutes } from "./routes.ts";

/** Builds the area: a summary of all other areas. */
export function createOverview({ clock }: { readonly clock: Clock }, parts: OverviewParts): ApiArea {
  return {
    parts: [{ name: "Overview", description: "A summary of all areas." }],
    routes: (api) => overviewRoutes(api, parts, clock),
  };
}
