import { expect, test } from "bun:test";
import { READING_TOOLS } from "../../../src/areas/mcp/tools.ts";
import { useTestServer } from "../../support/server.ts";
import { callTool, connected, dataOf, managedKey } from "./support.ts";

const server = useTestServer({
  args: ["--mcp", "--mcp-write"],
  manualClock: true,
});

test("the official client discovers the server and lists the tools, with each revision", async () => {
  const account = await server.account();
  const key = await managedKey(account, ["*"]);
  for (const era of ["auto", "pin", "legacy"] as const) {
    const client = await connected(server, key, era);
    expect(client.getServerVersion()?.name).toBe("ninefold");
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(Object.keys(READING_TOOLS).length);
    const { text } = await callTool(client, "flags_list");
    expect(dataOf(text)).toEqual({ flags: [] });
    await client.close();
  }
});
