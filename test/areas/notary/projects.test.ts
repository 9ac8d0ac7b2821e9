import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Client } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Creates a project of an account and a client with a key of the project. */
async function projectOf(account: Client, name: string): Promise<{ id: string; client: Client }> {
  const { id } = (await account.post("/v1/projects", { name })).body;
  const body = { prefix: "sm", name: "notary", scopes: ["witness:*"] };
  const key = await account.post(`/v1/projects/${id}/keys`, body);
  expect(key.status).toBe(201);
  return { id: String(id), client: server.client(String(key.body.secret)) };
}

test("every project has its own chain and cannot access others", async () => {
  const account = await server.account({ balance: 100 });
  const { id, client } = await projectOf(account, "Second");
  const [own, other] = [
    (await account.post("/v1/witness/sys/init")).body,
    (await client.post("/v1/witness/sys/init")).body,
  ];
  expect(other.chain_id).not.toBe(own.chain_id);
  await account.post("/v1/witness/log", { log: { of: "default" } });
  const { body: receipt } = await client.post("/v1/witness/log", { log: { of: "second" } });
  expect(receipt.sequence_id).toBe("1");
  expect((await client.get("/v1/witness/receipts")).body.receipts).toEqual([receipt]);
  expect((await client.post("/v1/witness/verify", { receipt })).body.valid).toBe(true);
  expect((await account.post("/v1/witness/verify", { receipt })).body.valid).toBe(false);
  const { body } = await account.get(`/v1/projects/${id}/overview`);
  expect(body.resources).toMatchObject({ chains: 1 });
});

test("a deleted project's key is rejected immediately, and its chain is removed with its rows", async () => {
  const account = await server.account({ balance: 100 });
  const { id, client } = await projectOf(account, "Short-lived");
  const { chain_id } = (await client.post("/v1/witness/sys/init")).body;
  for (let n = 0; n < 3; n += 1) await client.post("/v1/witness/log", { log: { n } });
  expect((await account.delete(`/v1/projects/${id}`)).status).toBe(200);
  expect((await client.post("/v1/witness/log", { log: { n: 3 } })).status).toBe(403);
  await server.clock.advance(60 * 60 * 1000);
  expect((await account.get(`/v1/witness/pubkey/${chain_id}`)).status).toBe(404);
});

test("a key can do what its scopes allow", async () => {
  const account = await server.account({ balance: 100 });
  await account.post("/v1/witness/sys/init");
  const keyWith = async (scope: string): Promise<Client> => {
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: [scope] });
    return server.client(String(body.secret));
  };
  const [reader, writer] = [await keyWith("witness:read"), await keyWith("witness:write")];
  const log = { log: { a: 1 } };
  expect((await reader.post("/v1/witness/log", log)).body.error).toMatchObject({
    code: "forbidden",
    message: expect.stringContaining("witness:write") as unknown as string,
  });
  const { body: receipt } = await writer.post("/v1/witness/log", log);
  expect((await writer.post("/v1/witness/verify", { receipt })).status).toBe(403);
  expect((await reader.post("/v1/witness/verify", { receipt })).body.valid).toBe(true);
  expect((await reader.get("/v1/witness/receipts/1")).status).toBe(200);
  expect((await writer.get("/v1/witness/receipts/1")).status).toBe(403);
  expect((await reader.get("/v1/witness/config")).status).toBe(404);
  expect((await reader.post("/v1/witness/config", {})).status).toBe(403);
  expect((await reader.post("/v1/witness/sys/init")).status).toBe(403);
});
