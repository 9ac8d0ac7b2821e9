import type { ApiArea } from "../../kernel/http/api.ts";
import { mcpRoutes } from "./routes.ts";
import { type McpDeps, McpServer } from "./server.ts";

/** Builds the area: operations as tools of agents. Mount it after all others, whose operations it reads. */
export function createMcp(deps: McpDeps): ApiArea {
  const server = new McpServer(deps);
  return {
    parts: [
      {
        name: "MCP",
        description: "Tools for agents, by the Model Context Protocol.",
      },
    ],
    routes: (api) => mcpRoutes(api, server),
  };
}
