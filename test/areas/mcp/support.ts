import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Client as ApiClient } from "../../support/client.ts";
import type { TestServer } from "../../support/server.ts";

/** The revision of the protocol that the tests send without a client library. */
export const REVISION = "2026-07-28";

/** The secret of a new managed key with these scopes. */
export async function managedKey(account: ApiClient, scopes: readonly string[], more = {}): Promise<string> {
  const { body } = await account.post("/v1/keys", {
    prefix: "sm",
    name: "agent",
    scopes,
    ...more,
  });
  return String(body["secret"]);
}

/** The official client, connected. `pin`: only the current revision; `legacy`: with `initialize`. */
export async function connected(
  server: TestServer,
  key: string,
  era: "auto" | "pin" | "legacy" = "pin",
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { versionNegotiation: { mode: era === "pin" ? { pin: REVISION } : era } },
  );
  const headers = { authorization: `Bearer ${key}` };
  const url = new URL(`${server.url}/v1/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** The text of a tool's result. */
export async function callTool(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { content, isError = false } = await client.callTool({
    name,
    arguments: args,
  });
  const [first] = content as { text: string }[];
  return { text: first?.text ?? "", isError };
}

/** The data between the marks of a result. */
export function dataOf(text: string): Record<string, unknown> {
  const [, nonce, data] = /<data-([0-9a-f]{32})>\n(.*)\n<\/data-\1>$/s.exec(text) ?? [];
  if (nonce === undefined || data === undefined) throw new Error(`no marks in ${text}`);
  return JSON.parse(data);
}

/** A message of the current revision. */
export function messageOf(method: string, params: Record<string, unknown> = {}, id: unknown = 1) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } };
}

/** Sends a body with the headers of the current revision, or others. */
export async function post(
  server: TestServer,
  key: string | null,
  body: unknown,
  headers: Record<string, string | null> = {},
) {
  const { method = "", params } = (body ?? {}) as {
    method?: string;
    params?: { name?: string } | null;
  };
  const usual = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: key === null ? null : `Bearer ${key}`,
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    "mcp-name": params?.name ?? null,
    ...headers,
  };
  const sent = Object.entries(usual).filter((entry): entry is [string, string] => entry[1] !== null);
  const response = await fetch(`${server.url}/v1/mcp`, {
    method: "POST",
    headers: Object.fromEntries(sent),
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    headers: response.headers,
    body: text === "" ? null : JSON.parse(text),
  };
}
