import type { ApiArea } from "../../kernel/http/api.ts";
import type { CheckDeps } from "./ports.ts";
import { checkRoutes } from "./routes.ts";
import { CheckService } from "./service.ts";

/** Creates the area: one call that authorizes a customer's request. */
export function createCheck<KeyRequest>(deps: CheckDeps<KeyRequest>): ApiArea {
  const service = new CheckService(deps);
  return {
    parts: [
      {
        name: "Check",
        description:
          "One call that authorizes a customer's request: key, scopes, addresses, rate limits, uses, credits and flags, all or nothing.",
      },
    ],
    alsoCalled: { check: ["authorize", "access", "entitlements", "protect"] },
    routes: (api) => checkRoutes(api, deps, service),
  };
}
