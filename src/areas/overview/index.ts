import type { ApiArea } from "../../kernel/http/api.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type OverviewParts, overviewRoutes } from "./routes.ts";

/** Builds the area: everything at a glance, as the other areas tell it. */
export function createOverview({ clock }: { readonly clock: Clock }, parts: OverviewParts): ApiArea {
  return {
    parts: [{ name: "Overview", description: "Every area at a glance." }],
    routes: (api) => overviewRoutes(api, parts, clock),
  };
}
