import { describe, expect, test } from "bun:test";
import { BODY_BYTES_MAX } from "../../../src/kernel/http/operation.ts";
import { expectError } from "../../support/errors.ts";
import { useTestServer } from "../../support/server.ts";
import { Browser } from "../session/support.ts";
import { managedKey, messageOf, post, REVISION } from "./support.ts";

const LISTED = "https://app.example.com";
const OWN = "https://ninefold.example.com";
const server = useTestServer({
  args: ["--mcp", "--cors-origins", LISTED, "--public-url", OWN],
  manualClock: true,
});

const FLAGS = messageOf("tools/call", { name: "flags_list", arguments: {} });

async function agent(): Promise<string> {
  return managedKey(await server.account(), ["gate:read"]);
}

describe("without a key that an agent may use", () => {
  test("401 without one", async () => {
    expect((await post(server, null, FLAGS)).status).toBe(401);
  });

  test("403 with a platform key, the operator's among them", async () => {
    const { key } = await server.account();
    for (const platformKey of [key, server.key]) {
      const { status, body } = await post(server, platformKey, FLAGS);
      expect(status).toBe(403);
      expect(body.error.message).toContain("Create a key with the scopes that the agent needs.");
    }
  });

  test("403 with a session of a managed key", async () => {
    const browser = new Browser(server);
    const client = await browser.logIn(await agent());
    const { error } = expectError(await client.post("/v1/mcp", FLAGS), "forbidden");
    expect(error.message).toContain("not a managed key");
  });
});

describe("the origin", () => {
  test.each([LISTED, OWN])("%s is served", async (origin) => {
    expect((await post(server, await agent(), FLAGS, { origin })).status).toBe(200);
  });

  test.each(["https://evil.example", "null", "http://127.0.0.1"])("%s gets 403", async (origin) => {
    const { status, body } = await post(server, await agent(), FLAGS, {
      origin,
    });
    expect(status).toBe(403);
    expect(body.error.message).toContain("--cors-origins");
  });

  test("of this address gets 403, since an attacker chooses the Host", async () => {
    expect((await post(server, await agent(), FLAGS, { origin: server.url })).status).toBe(403);
  });

  test("may send the headers of the protocol if it is listed", async () => {
    const wanted = "mcp-method,mcp-name,mcp-protocol-version";
    const headers = {
      origin: LISTED,
      "access-control-request-method": "POST",
      "access-control-request-headers": wanted,
    };
    const response = await fetch(`${server.url}/v1/mcp`, { method: "OPTIONS", headers });
    const allowed = response.headers.get("access-control-allow-headers")?.split(", ");
    expect(allowed).toEqual(expect.arrayContaining(wanted.split(",")));
  });
});

test.each(["GET", "DELETE", "PUT", "HEAD"])("%s gets 405", async (method) => {
  const response = await fetch(`${server.url}/v1/mcp`, { method });
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toBe("POST");
});

describe("400 and the error of the protocol for", () => {
  const meta = FLAGS.params._meta;
  test.each<[string, unknown, Record<string, string | null>, number]>([
    ["a body that is not JSON", "{", {}, -32700],
    ["a batch", [FLAGS], {}, -32600],
    ["a message without a method", { jsonrpc: "2.0", id: 1 }, {}, -32600],
    ["another version of JSON-RPC", { ...FLAGS, jsonrpc: "1.0" }, {}, -32600],
    ["an id that is null", { ...FLAGS, id: null }, {}, -32600],
    ["an id that is an object", { ...FLAGS, id: {} }, {}, -32600],
    ["an id past the exact integers", { ...FLAGS, id: 2 ** 53 }, {}, -32600],
    ["an id with a fraction", { ...FLAGS, id: 1.5 }, {}, -32600],
    ["params that are a list", { ...FLAGS, params: [] }, {}, -32600],
    ["a call without an id", { ...FLAGS, id: undefined }, {}, -32600],
    ["no version", FLAGS, { "mcp-protocol-version": null }, -32020],
    ["an earlier version in the header", FLAGS, { "mcp-protocol-version": "2025-11-25" }, -32020],
    ["no method in the headers", FLAGS, { "mcp-method": null }, -32020],
    ["another method in the headers", FLAGS, { "mcp-method": "tools/list" }, -32020],
    ["no name in the headers", FLAGS, { "mcp-name": null }, -32020],
    ["another name in the headers", FLAGS, { "mcp-name": "audit_list" }, -32020],
    ["no _meta", { ...FLAGS, params: { name: "flags_list" } }, {}, -32602],
    [
      "no capabilities",
      messageOf("tools/list", {}).params && {
        ...FLAGS,
        params: {
          name: "flags_list",
          _meta: { "io.modelcontextprotocol/protocolVersion": REVISION },
        },
      },
      {},
      -32602,
    ],
    [
      "an unknown version",
      {
        ...FLAGS,
        params: {
          ...FLAGS.params,
          _meta: {
            ...meta,
            "io.modelcontextprotocol/protocolVersion": "2030-01-01",
          },
        },
      },
      { "mcp-protocol-version": "2030-01-01" },
      -32022,
    ],
  ])("%s", async (_, body, headers, code) => {
    const response = await post(server, await agent(), body, headers);
    expect([response.status, response.body.error.code]).toEqual([400, code]);
  });
});

test("an unknown version learns the known ones", async () => {
  const { body } = await post(server, await agent(), messageless("2030-01-01"), {
    "mcp-protocol-version": "2030-01-01",
  });
  expect(body.error.data).toEqual({
    supported: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
    requested: "2030-01-01",
  });
});

function messageless(version: string) {
  return {
    jsonrpc: "2.0",
    id: 1,
    method: "ping",
    params: { _meta: { "io.modelcontextprotocol/protocolVersion": version } },
  };
}

test("a name may be encoded in its header", async () => {
  const encoded = `=?base64?${Buffer.from("flags_list").toString("base64")}?=`;
  expect((await post(server, await agent(), FLAGS, { "mcp-name": encoded })).status).toBe(200);
});

test("404 for an unknown method, and for ping, which the revision does not have", async () => {
  for (const method of ["ping", "resources/list", "initialize"]) {
    const { status, body } = await post(server, await agent(), messageOf(method));
    expect([status, body.error.code, body.id]).toEqual([404, -32601, 1]);
  }
});

test("an earlier client initializes, is done, pings and lists", async () => {
  const key = await agent();
  const message = (method: string, id?: number, params = {}) => ({
    jsonrpc: "2.0",
    id,
    method,
    params,
  });
  const earlier = {
    "mcp-protocol-version": "2025-11-25",
    "mcp-method": null,
    "mcp-name": null,
  };
  const begun = await post(server, key, message("initialize", 1, { protocolVersion: "2025-11-25" }), {
    ...earlier,
    "mcp-protocol-version": null,
  });
  expect(begun.body.result).toMatchObject({
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
  });
  expect(begun.headers.has("mcp-session-id")).toBe(false);
  const done = await post(server, key, message("notifications/initialized"), earlier);
  expect([done.status, done.text]).toEqual([202, ""]);
  expect((await post(server, key, message("ping", 2), earlier)).body.result).toEqual({});
  expect((await post(server, key, message("tools/list", 3), earlier)).body.result.tools).not.toEqual([]);
  // A client of 2025-03-26 need not name its version; some write what is missing as null.
  for (const version of [null, "", "2025-03-26"]) {
    const oldest = { ...earlier, "mcp-protocol-version": version };
    const list = { ...message("tools/list", 3), params: null };
    expect((await post(server, key, list, oldest)).body.result.tools).not.toEqual([]);
    const flags = message("tools/call", 4, { name: "flags_list", arguments: null });
    expect((await post(server, key, flags, oldest)).body.result.isError).not.toBe(true);
  }
  const oldest = await post(
    server,
    key,
    message("initialize", 5, { protocolVersion: "2025-03-26" }),
    earlier,
  );
  expect(oldest.body.result.protocolVersion).toBe("2025-03-26");
  const unknown = await post(server, key, message("prompts/list", 4), earlier);
  expect([unknown.status, unknown.body.error.code]).toEqual([200, -32601]);
  const old = await post(server, key, message("initialize", 5, { protocolVersion: "2024-11-05" }), earlier);
  expect(old.body.result.protocolVersion).toBe("2025-11-25");
});

test("413 for a body over the limit", async () => {
  const padded = (bytes: number) => JSON.stringify(FLAGS).padEnd(bytes, " ");
  expect((await post(server, await agent(), padded(BODY_BYTES_MAX), of(FLAGS))).status).toBe(200);
  expect((await post(server, await agent(), padded(BODY_BYTES_MAX + 1), of(FLAGS))).status).toBe(413);
});

function of({ method, params }: typeof FLAGS) {
  return {
    "mcp-method": method,
    "mcp-name": (params as { name?: string }).name ?? null,
  };
}

test("400 for a body that is nested too deeply, or has too many values", async () => {
  for (const hostile of [`${"[".repeat(100_000)}`, `[${"0,".repeat(200_000)}0]`]) {
    const { status, body } = await post(server, await agent(), hostile);
    expect([status, body.error.code]).toEqual([400, -32600]);
  }
});

test("429 beyond the rate limit of the key: a call takes one token", async () => {
  const account = await server.account({ tier: "free" });
  const key = await managedKey(account, ["gate:read"]);
  const statuses: number[] = [];
  for (let at = 0; at < 61; at += 1) statuses.push((await post(server, key, FLAGS)).status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(60);
  expect(statuses.at(-1)).toBe(429);
});

test("a tool's name that is no text is invalid, also if it cannot become one", async () => {
  const earlier = { "mcp-protocol-version": "2025-11-25", "mcp-name": null };
  for (const name of [{ toString: 1, valueOf: 1 }, [{ toString: 1 }], 1, null]) {
    const { status, body } = await post(
      server,
      await agent(),
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } },
      earlier,
    );
    expect(status).toBe(200);
    expect(body.error).toEqual({ code: -32602, message: '"name" must be a string.' });
  }
});

test("null for a path parameter is a missing one, not the name null", async () => {
  const message = messageOf("tools/call", { name: "flags_get", arguments: { flagKey: null } });
  const { body } = await post(server, await agent(), message);
  expect(body.result.isError).toBe(true);
  expect(body.result.content[0].text).toContain("flagKey is required");
});
