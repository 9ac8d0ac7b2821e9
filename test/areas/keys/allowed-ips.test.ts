import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { Browser, loggedIn } from "../session/support.ts";
import { makeKey, termsOf } from "./support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ args: ["--trust-proxy", "127.0.0.1,::1"] });
  account = await server.account({ balance: 100_000 });
});
afterAll(() => server.stop());

const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
const bearer = (allowed_ips: readonly string[], more: object = {}) =>
  makeKey(account, { prefix: "sm", scopes: ["*"], allowed_ips, ...more });

describe("a credential with allowed_ips", () => {
  test("works only from these addresses; from others every path is 403, free of charge", async () => {
    const { secret } = await bearer(["203.0.113.0/24", "2001:db8::/32"]);
    const client = server.client(secret);
    for (const address of ["203.0.113.9", "::ffff:203.0.113.9", "2001:db8::1", "198.51.100.1, 203.0.113.9"])
      expect((await client.get("/v1/gate", from(address))).status).toBe(200);
    const { balance } = (await account.get("/v1/meter/balance")).body;
    for (const path of ["/v1/gate", "/v1/keys", "/v1/meter/balance", "/v1/nothing"]) {
      for (const address of ["203.0.114.9", "2001:db9::1", "203.0.113.9, 198.51.100.1"]) {
        const refused = expectError(await client.get(path, from(address)), "forbidden");
        const [, last = address] = address.split(", ");
        expect(refused.error.message).toContain(`This key does not work from ${last}`);
      }
    }
    // The address of the socket.
    expectError(await client.get("/v1/gate"), "forbidden");
    expectError(await client.post("/v1/gate", { flag_key: "a", enabled: true }), "forbidden");
    expect((await account.get("/v1/gate")).body).toMatchObject({ flags: [] });
    const after = Number((await account.get("/v1/meter/balance")).body.balance);
    expect(Number(balance) - after).toBeLessThanOrEqual(2);
  });

  test("gets no stored response from another address, and stores no rejection", async () => {
    const { secret } = await bearer(["203.0.113.9"]);
    const client = server.client(secret);
    const send = (address: string) =>
      client.post("/v1/keys", termsOf(), {
        headers: { ...from(address).headers, "idempotency-key": "once" },
      });
    expectError(await send("198.51.100.1"), "forbidden");
    // It can create only credentials with addresses within its own, but any keys with another prefix.
    const created = await send("203.0.113.9");
    expect(created.status, created.text).toBe(201);
    expectError(await send("198.51.100.1"), "forbidden");
    expect((await send("203.0.113.9")).text).toBe(created.text);
  });

  test("is admitted from the next request after its address was added", async () => {
    const { id, secret } = await bearer(["203.0.113.9"]);
    const client = server.client(secret);
    expectError(await client.get("/v1/gate", from("198.51.100.1")), "forbidden");
    await account.patch(`/v1/keys/${id}`, { allowed_ips: ["198.51.100.0/24"] });
    expect((await client.get("/v1/gate", from("198.51.100.1"))).status).toBe(200);
    expectError(await client.get("/v1/gate", from("203.0.113.9")), "forbidden");
    await account.patch(`/v1/keys/${id}`, { allowed_ips: [] });
    expect((await client.get("/v1/gate", from("203.0.113.9"))).status).toBe(200);
  });

  test("creates, changes and rotates only credentials with addresses within its own", async () => {
    const { id, secret } = await bearer(["203.0.113.0/24"]);
    const client = server.client(secret);
    const here = from("203.0.113.9");
    const make = (allowed_ips: readonly string[]) =>
      client.post("/v1/keys", termsOf({ prefix: "sm", scopes: ["gate:read"], allowed_ips }), here);
    for (const elsewhere of [[], ["203.0.112.0/23"], ["203.0.113.1", "198.51.100.1"]]) {
      const { error } = expectError(await make(elsewhere), "forbidden");
      expect(error.message).toContain("Your key works only from 203.0.113.0/24");
    }
    const created = await make(["203.0.113.128/25"]);
    expect(created.status).toBe(201);
    const path = `/v1/keys/${created.body.key_id}`;
    expect((await client.patch(path, { allowed_ips: ["203.0.113.1"] }, here)).status).toBe(200);
    expectError(await client.patch(path, { allowed_ips: [] }, here), "forbidden");
    expectError(await client.patch(`/v1/keys/${id}`, { allowed_ips: null }, here), "forbidden");
    expect((await client.post(`${path}/rotate`, {}, here)).status).toBe(200);
    const free = await bearer([]);
    expectError(await client.post(`/v1/keys/${free.id}/rotate`, {}, here), "forbidden");
    // Revoking requires only the scopes.
    expect((await client.delete(`/v1/keys/${free.id}`, here)).status).toBe(200);
  });

  test("opens sessions from these addresses, which work only from them", async () => {
    const { secret } = await bearer(["127.0.0.1", "::1"]);
    const mine = new Browser(server);
    mine.headers["x-forwarded-for"] = "127.0.0.1";
    await mine.logIn(secret);
    expect((await mine.get("/v1/gate")).status).toBe(200);
    expectError(await mine.get("/v1/gate", from("198.51.100.1")), "forbidden");
    const refused = await new Browser(server).post("/v1/session", { key: secret }, from("198.51.100.1"));
    expectError(refused, "forbidden");
  });
});

describe("a paused credential", () => {
  test("is 401 until it is enabled again, and so are its sessions", async () => {
    const { id, secret } = await bearer([], { owner_id: "acme" });
    const client = server.client(secret);
    const mine = await loggedIn(server, secret);
    expect((await account.patch(`/v1/keys/${id}`, { enabled: false })).body).toMatchObject({
      enabled: false,
    });
    for (const who of [client, mine]) expectError(await who.get("/v1/gate"), "unauthorized");
    expect((await account.post("/v1/keys/verify", { secret })).body).toMatchObject({ error: "disabled" });
    await account.patch(`/v1/keys/${id}`, { enabled: true });
    for (const who of [client, mine]) expect((await who.get("/v1/gate")).status).toBe(200);
  });

  test("is rejected even if its request had passed the guard in the same batch", async () => {
    const key = await bearer([]);
    const { http } = server.server.app;
    const send = (method: string, path: string, secret: string | null, body?: object) =>
      http.handle(
        new Request(`${server.url}${path}`, {
          method,
          headers: { authorization: `Bearer ${secret}` },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
    const [paused, used] = await Promise.all([
      send("PATCH", `/v1/keys/${key.id}`, account.key, { enabled: false }),
      send("POST", "/v1/gate", key.secret, { flag_key: "late", enabled: true }),
    ]);
    expect([paused.status, used.status]).toEqual([200, 401]);
  });
});
