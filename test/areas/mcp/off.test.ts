import { expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { useTestServer } from "../../support/server.ts";

const server = useTestServer();

test("without the option there is no such path, and the error names the option", async () => {
  const { error } = expectError(await server.operator.post("/v1/mcp", {}), "not_found");
  expect(error.message).toBe("There is no POST /v1/mcp. The MCP server is off: start the server with --mcp.");
  expect(server.server.app.http.routes.map(({ path }) => path)).not.toContain("/v1/mcp");
  expect(server.server.app.http.contained).toBeNull();
});
