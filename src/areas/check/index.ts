import type { ApiArea } from "../../kernel/http/api.ts";
import type { CheckPorts } from "./ports.ts";
import { checkRoutes } from "./routes.ts";
import { CheckService } from "./service.ts";

/** Builds the area: one call that lets a customer's request in. */
export function createCheck<Asked>(ports: CheckPorts<Asked>): ApiArea {
  const service = new CheckService(ports);
  return {
    parts: [
      {
        name: "Check",
        description:
          "One call that lets a customer's request in: key, scopes, addresses, rate limits, uses, credits and flags, all or nothing.",
      },
    ],
    alsoCalled: { check: ["authorize", "access", "entitlements", "protect"] },
    routes: (api) => checkRoutes(api, ports, service),
  };
}
