import { afterAll, beforeAll, expect, test } from "bun:test";
import { PUSH_TOKEN_LENGTHS } from "../../../../src/areas/monitors/heartbeat-fields.ts";
import { PINGS_PER_MINUTE } from "../../../../src/areas/monitors/heartbeats/pings.ts";
import { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: AccountClient;
let nobody: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "pro" });
  nobody = new Client(server.url, null);
});
afterAll(() => server.stop());

const token = () => crypto.randomUUID().replaceAll("-", "");

async function make(addresses: object) {
  const { status, body, text } = await account.post("/v1/pulse", { type: "heartbeat", ...addresses });
  expect(status, text).toBe(201);
  return body;
}

async function lastPing(id: unknown) {
  const { body } = await account.get(`/v1/pulse/${id}/pings`);
  return (body["pings"] as Record<string, unknown>[])[0];
}

test("a new heartbeat keeps the UUID that it is given", async () => {
  const ping_id = crypto.randomUUID();
  const created = await make({ ping_id: ping_id.toUpperCase() });
  expect(created["ping_url"]).toBe(`${server.url}/ping/${ping_id}`);
  expect((await nobody.get(`/ping/${ping_id}/start`)).text).toBe("OK");
  expect(await lastPing(created["id"])).toMatchObject({ kind: "start" });
});

test("a UUID or a token that another heartbeat of the server has is a conflict, which does not name it", async () => {
  const body = { ping_id: crypto.randomUUID(), push_token: token() };
  const { id } = await make(body);
  const other = await server.account();
  for (const [field, value] of Object.entries(body)) {
    const rejected = await other.post("/v1/pulse", { type: "heartbeat", [field]: value });
    expect(expectError(rejected, "ping_id_taken").error.message).toBe(
      `Another heartbeat of this server has this ${field}. Delete that one, or omit the field.`,
    );
  }
  await account.delete(`/v1/pulse/${id}`);
  expect((await other.post("/v1/pulse", { type: "heartbeat", ...body })).status).toBe(201);
});

test("a push is answered as Uptime Kuma answers it, and recorded as a ping", async () => {
  const push_token = token();
  const created = await make({ push_token });
  const path = `/api/push/${push_token}`;
  expect(created["push_url"]).toBe(server.url + path);
  const push = async (query: string) => {
    const answer = await nobody.get(path + query);
    expect([answer.status, answer.body]).toEqual([200, { ok: true }]);
    return lastPing(created["id"]);
  };
  expect(await push("?status=up&msg=OK&ping=")).toMatchObject({
    kind: "success",
    body: null,
    duration_ms: null,
  });
  expect(await push("?status=up&msg=OK&ping=41.6")).toMatchObject({ kind: "success", duration_ms: 42 });
  expect(await push("?ping=-1")).toMatchObject({ kind: "success", duration_ms: null });
  expect(await push("?status=down&msg=no%20disk")).toMatchObject({ kind: "fail", body: "no disk" });
  expect(await push("?status=broken")).toMatchObject({ kind: "fail", body: null });
  const { body } = await account.get(`/v1/pulse/${created["id"]}`);
  expect(body["status"]).toBe("down");
});

test("a push that is not accepted says so", async () => {
  const push_token = token();
  await make({ push_token });
  const path = `/api/push/${push_token}`;
  const missing = await nobody.get(`/api/push/${token()}`);
  expectError(missing, "not_found");
  expect(missing.body).toMatchObject({ ok: false, msg: "not found" });
  const short = await nobody.get("/api/push/short");
  expectError(short, "invalid_request");
  expect(short.body).toMatchObject({ ok: false, msg: "invalid url format" });
  expect((await nobody.delete(path)).status).toBe(405);
  const pushes = Array.from({ length: PINGS_PER_MINUTE }, () => nobody.get(path));
  await Promise.all(pushes);
  const tooMany = await nobody.get(path);
  expectError(tooMany, "rate_limit_exceeded");
  expect(tooMany.body).toMatchObject({ ok: false, msg: "rate limited" });
});

test.each([
  [{ push_token: "a".repeat(PUSH_TOKEN_LENGTHS.min) }, 201],
  [{ push_token: "a".repeat(PUSH_TOKEN_LENGTHS.min - 1) }, 400],
  [{ push_token: "b".repeat(PUSH_TOKEN_LENGTHS.max) }, 201],
  [{ push_token: "b".repeat(PUSH_TOKEN_LENGTHS.max + 1) }, 400],
  [{ push_token: "a/b/c/d/e/f" }, 400],
  [{ ping_id: "nightly" }, 400],
  [{ type: "http", url: "https://example.com/", interval: 60_000, ping_id: crypto.randomUUID() }, 400],
])("%j: %i", async (given, status) => {
  expect((await account.post("/v1/pulse", { type: "heartbeat", ...given })).status).toBe(status);
});

test("keys that may only read see neither URL", async () => {
  const { id } = await make({ push_token: token() });
  const { body } = await account.post("/v1/keys", { prefix: "sm", name: "r", scopes: ["pulse:read"] });
  const reader = server.client(String(body["secret"]));
  expect((await reader.get(`/v1/pulse/${id}`)).body).toMatchObject({ ping_url: null, push_url: null });
});
