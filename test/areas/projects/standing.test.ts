import { afterAll, beforeAll, expect, test } from "bun:test";
import { KEYS_SCANNED_MAX } from "../../../src/areas/keys/service.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** A managed key of an account, and a client with it. */
async function managedKey(owner: { post: AccountClient["post"] }, scopes: string[], path = "/v1/keys") {
  const { body } = await owner.post(path, { prefix: "sm", name: "key", scopes });
  const secret = String(body["secret"]);
  return { id: String(body["key_id"]), secret, client: server.client(secret) };
}

/** Sends a request without a socket, so that several are in one batch in this order. */
function handIn(key: string | null, method: string, path: string, body?: object): Promise<Response> {
  const init = { method, headers: { authorization: `Bearer ${key}` } };
  const whole = body === undefined ? init : { ...init, body: JSON.stringify(body) };
  return server.server.app.http.handle(new Request(server.url + path, whole));
}

/** Creates an account with a second project. Returns the id of its default project. */
async function withTwoProjects(): Promise<{ account: AccountClient; defaultId: string }> {
  const account = await server.account();
  const { projects } = (await account.get("/v1/projects")).body as { projects: { id: string }[] };
  expect((await account.post("/v1/projects", { name: "Second" })).status).toBe(201);
  return { account, defaultId: String(projects[0]?.id) };
}

test.each([[["keys:write"]], [["keys:*"]], [["keys:*", "meter:*", "projects:*"]]])(
  "a managed key with %p does not get a platform key out of a rotation",
  async (scopes) => {
    const account = await server.account();
    const weak = await managedKey(account, scopes);
    const before = await account.get("/v1/meter/balance");
    const refused = await weak.client.post("/v1/keys/rotate");
    expect([refused.status, refused.body["code"]]).toEqual([403, "forbidden"]);
    expect((await account.get("/v1/meter/balance")).body).toEqual(before.body);
    const whole = await managedKey(account, ["*"]);
    expect((await whole.client.post("/v1/keys/rotate")).status).toBe(200);
  },
);

test("a managed key of the operator without * does not become the operator", async () => {
  const weak = await managedKey(server.operator, ["keys:write"]);
  expect((await weak.client.get("/v1/admin/accounts")).status).toBe(403);
  expect((await weak.client.post("/v1/keys/rotate")).status).toBe(403);
});

test("a lock requested after the deletion of the default project belongs to the new default project", async () => {
  const { account, defaultId } = await withTwoProjects();
  const deleted = handIn(account.key, "DELETE", `/v1/projects/${defaultId}`);
  const acquired = handIn(account.key, "POST", "/v1/latch/job/acquire", { ttl: 60_000 });
  expect([(await deleted).status, (await acquired).status]).toEqual([200, 200]);
  expect((await account.get("/v1/latch/job")).body["locked"]).toBe(true);
});

test("a receipt after the deletion of the default project belongs to the chain of the new default project", async () => {
  const { account, defaultId } = await withTwoProjects();
  await account.post("/v1/witness/sys/init");
  const deleted = handIn(account.key, "DELETE", `/v1/projects/${defaultId}`);
  const logged = handIn(account.key, "POST", "/v1/witness/log", { log: { a: 1 } });
  // The new default project has no chain yet.
  expect([(await deleted).status, (await logged).status]).toEqual([200, 409]);
});

test.each([false, true])("a revoked key is rejected in the same batch, run again: %p", async (again) => {
  const account = await server.account();
  const key = await managedKey(account, ["gate:*"]);
  expect((await key.client.post("/v1/gate", { flag_key: "flag", enabled: true })).status).toBe(201);
  const revoked = handIn(account.key, "DELETE", `/v1/keys/${key.id}`);
  const used = handIn(key.secret, "DELETE", "/v1/gate/flag");
  const failing = server.server.kernel.writer
    .submit<null>((tx) => {
      if (!again) return null;
      tx.willWrite();
      throw new Error("a unit that fails after it has written");
    })
    .catch(() => null);
  expect([(await revoked).status, (await used).status, await failing]).toEqual([200, 401, null]);
  expect((await account.get("/v1/gate/flag")).status).toBe(200);
});

test("a waiter with a revoked key or suspended account does not get the lock: the next one does", async () => {
  const account = await server.account();
  const key = await managedKey(account, ["latch:*"]);
  const held = await account.post("/v1/latch/x/acquire", { ttl: 60_000 });
  const waiting = key.client.post("/v1/latch/x/acquire", { ttl: 60_000, timeout: 60_000 });
  while ((await account.get("/v1/latch/x")).body["queue_depth"] !== 1);
  const next = account.post("/v1/latch/x/acquire", { ttl: 60_000, timeout: 60_000 });
  while ((await account.get("/v1/latch/x")).body["queue_depth"] !== 2);
  expect((await account.delete(`/v1/keys/${key.id}`)).status).toBe(200);
  expect((await account.post("/v1/latch/x/release", { token: held.body["token"] })).status).toBe(200);
  expect((await waiting).status).toBe(401);
  expect((await next).status).toBe(200);
});

test("a page of keys ends early instead of skipping very many keys of a deleted project", async () => {
  const account = await server.account();
  const created = await account.post("/v1/keys", { prefix: "acme", name: "old", scopes: ["a"] });
  const project = String((await account.post("/v1/projects", { name: "Leaving" })).body["id"]);
  const count = KEYS_SCANNED_MAX + 100;
  for (let done = 0; done < count; done += 100) {
    const make = () =>
      account.post(`/v1/projects/${project}/keys`, { prefix: "acme", name: "k", scopes: ["a"] });
    await Promise.all(Array.from({ length: 100 }, make));
  }
  const deleted = await handIn(account.key, "DELETE", `/v1/projects/${project}`);
  expect(deleted.status).toBe(200);
  // Read in the same turn of the event loop as that response: no row has been removed yet.
  const listed = handIn(account.key, "GET", "/v1/keys?limit=1");
  const page = (await (await listed).json()) as { keys: object[]; has_more: boolean; next_cursor: string };
  expect([page.keys, page.has_more]).toEqual([[], true]);
  const rest = await account.get(`/v1/keys?limit=1&cursor=${page.next_cursor}`);
  const keys = rest.body["keys"] as { id: string }[];
  expect([keys.map(({ id }) => id), rest.body["has_more"]]).toEqual([
    [String(created.body["key_id"])],
    false,
  ]);
});

test.each([1, 2])(
  "a lock granted to %p requests of one token, all of them gone, passes on",
  async (requests) => {
    const account = await server.account();
    const held = await account.post("/v1/latch/x/acquire", { ttl: 900_000 });
    const gone = new AbortController();
    const body = JSON.stringify({ ttl: 900_000, timeout: 900_000, token: crypto.randomUUID() });
    const acquire = () => {
      const headers = { authorization: `Bearer ${account.key}` };
      const init = { method: "POST", headers, body, signal: gone.signal };
      return server.server.app.http.handle(new Request(`${server.url}/v1/latch/x/acquire`, init));
    };
    const waiting = Array.from({ length: requests }, acquire);
    while ((await account.get("/v1/latch/x")).body["queue_depth"] !== requests);
    const released = handIn(account.key, "POST", "/v1/latch/x/release", { token: held.body["token"] });
    server.server.kernel.writer.onCommitted(() => gone.abort());
    expect((await released).status).toBe(200);
    for (const answer of waiting) expect((await answer).status).toBe(408);
    expect((await account.get("/v1/latch/x")).body["locked"]).toBe(false);
  },
);
