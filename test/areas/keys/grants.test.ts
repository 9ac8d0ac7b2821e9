import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Answer, Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { type MadeKey, makeBearer, makeKey, termsOf } from "./support.ts";

const HOUR_MS = 60 * 60 * 1000;

let server: TestServer;
let account: AccountClient;
let project: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 100_000 });
  project = String((await account.post("/v1/projects", { name: "Shop" })).body.id);
});
afterAll(() => server.stop());

/** The time in `hours` hours, in ISO format. */
function inHours(hours: number): string {
  return new Date(server.clock.now() + hours * HOUR_MS).toISOString();
}

/** A client with a new key. */
async function clientWith(scopes: readonly string[], more: object = {}, of?: string): Promise<Client> {
  return server.client((await makeKey(account, { prefix: "sm", scopes, ...more }, of)).secret);
}

function expectRefused(answer: Answer, reason: string): void {
  expect(expectError(answer, "forbidden").error.message).toContain(reason);
}

const bearer = (scopes: readonly string[], more: object = {}) => termsOf({ prefix: "sm", scopes, ...more });

describe("scopes: a key rotates and revokes only keys whose scopes it has", () => {
  test.each([
    [["keys:write"], ["*"], "*"],
    [["keys:write"], ["keys:*"], "keys:*"],
    [["keys:write"], ["keys:read"], "keys:read"],
    [["keys:*", "gate:read", "gate:write"], ["gate:*"], "gate:*"],
    [["keys:*", "meter:read"], ["meter:read", "meter:write"], "meter:write"],
  ])("a key with %j cannot rotate or revoke one with %j", async (has, scopes, lacking) => {
    const client = await clientWith(has);
    const stronger = await makeBearer(account, scopes);
    for (const answer of [
      await client.post("/v1/keys", bearer(scopes)),
      await client.post(`/v1/keys/${stronger.id}/rotate`, {}),
      await client.delete(`/v1/keys/${stronger.id}`),
    ]) {
      expectRefused(answer, `does not have the scope ${lacking}`);
    }
    expect((await account.get(`/v1/keys/${stronger.id}`)).body.revoked_at).toBeNull();
    // Not even a second time, when it would change nothing.
    await account.delete(`/v1/keys/${stronger.id}`);
    expectRefused(await client.delete(`/v1/keys/${stronger.id}`), `does not have the scope ${lacking}`);
  });

  test.each([
    [["keys:write"], ["keys:write"]],
    [["keys:*"], ["keys:read", "keys:write"]],
    [["*"], ["*"]],
    [
      ["gate:*", "keys:write"],
      ["gate:read", "keys:write"],
    ],
  ])("a key with %j can rotate and revoke one with %j", async (has, scopes) => {
    const client = await clientWith(has);
    const { id } = await makeBearer(client, scopes);
    const rotated = await client.post(`/v1/keys/${id}/rotate`, {});
    expect(rotated.status, rotated.text).toBe(200);
    expect((await client.delete(`/v1/keys/${rotated.body.new_key_id}`)).status).toBe(200);
  });

  test("scopes of keys with another prefix have no meaning here: keys:write is enough for all", async () => {
    const client = await clientWith(["keys:write"]);
    const { id } = await makeKey(client, { scopes: ["*", "orders:write"] });
    const rotated = await client.post(`/v1/keys/${id}/rotate`, {});
    expect(rotated.status).toBe(200);
    expect((await client.delete(`/v1/keys/${rotated.body.new_key_id}`)).status).toBe(200);
  });

  test("a key can revoke itself", async () => {
    const own = await makeBearer(account, ["keys:write"]);
    expect((await server.client(own.secret).delete(`/v1/keys/${own.id}`)).status).toBe(200);
    expectError(await server.client(own.secret).get("/v1/keys"), "unauthorized");
  });
});

describe("lifetime: a key that expires cannot grant a later expiry", () => {
  let ending: Client;
  let end: string;
  beforeAll(async () => {
    end = inHours(10);
    ending = await clientWith(["*"], { expires_at: end });
  });

  test.each(["sm", "acme"])(
    "prefix %s: neither none nor a millisecond later; its own expiry is allowed",
    async (prefix) => {
      const later = new Date(Date.parse(end) + 1).toISOString();
      for (const path of ["/v1/keys", `/v1/projects/${project}/keys`]) {
        for (const expires_at of [undefined, null, later]) {
          const terms = termsOf({ prefix, scopes: ["gate:read"], expires_at });
          expectRefused(await ending.post(path, terms), `Your key expires at ${end}`);
        }
        const created = await ending.post(path, termsOf({ prefix, scopes: ["gate:read"], expires_at: end }));
        expect(created.body.expires_at).toBe(end);
      }
    },
  );

  test("it cannot rotate a key that expires later, and can revoke any", async () => {
    const endless = await makeBearer(account, ["gate:read"]);
    const longer = await makeKey(account, { expires_at: inHours(11) });
    const shorter = await makeKey(account, { expires_at: inHours(9) });
    for (const { id } of [endless, longer]) {
      expectRefused(await ending.post(`/v1/keys/${id}/rotate`, {}), `Your key expires at ${end}`);
    }
    const rotated = await ending.post(`/v1/keys/${shorter.id}/rotate`, {});
    expect(rotated.status).toBe(200);
    const created = await account.get(`/v1/keys/${rotated.body.new_key_id}`);
    expect(created.body.expires_at).toBe(inHours(9));
    for (const { id } of [endless, longer]) expect((await ending.delete(`/v1/keys/${id}`)).status).toBe(200);
  });

  test("a rotated key expires with its grace period, and so do the keys that it creates", async () => {
    const old = await makeBearer(account, ["*"]);
    const client = server.client(old.secret);
    expect((await client.post("/v1/keys", bearer(["*"]))).status).toBe(201);
    await account.post(`/v1/keys/${old.id}/rotate`, { grace_hours: 2 });
    expectRefused(await client.post("/v1/keys", bearer(["*"])), "Your key expires at");
    expect((await client.post("/v1/keys", bearer(["*"], { expires_at: inHours(2) }))).status).toBe(201);
  });

  test("a key that expires can rotate itself; the new key expires at the same time", async () => {
    const expires_at = inHours(5);
    const own = await makeKey(account, { prefix: "sm", scopes: ["keys:write"], expires_at });
    const rotated = await server.client(own.secret).post(`/v1/keys/${own.id}/rotate`, { grace_hours: 720 });
    expect(rotated.status).toBe(200);
    const created = await account.get(`/v1/keys/${rotated.body.new_key_id}`);
    expect(created.body.expires_at).toBe(expires_at);
    expect(rotated.body.old_expires_at).toBe(expires_at);
  });
});

describe("project: a key of another project requires the scope *", () => {
  let elsewhere: MadeKey;
  let home: string;
  beforeAll(async () => {
    elsewhere = await makeBearer(account, ["gate:read"], project);
    const { body } = await account.get("/v1/projects");
    home = (body.projects as { id: string; slug: string }[]).find(({ slug }) => slug === "default")?.id ?? "";
  });

  const ALL_BUT_EVERYTHING = ["keys:*", "projects:*", "gate:*"];

  test.each(["sm", "acme"])("to create one with the prefix %s", async (prefix) => {
    const terms = termsOf({ prefix, scopes: ["gate:read"] });
    const some = await clientWith(ALL_BUT_EVERYTHING);
    expectRefused(await some.post(`/v1/projects/${project}/keys`, terms), "keys of another project");
    expect((await some.post(`/v1/projects/${home}/keys`, terms)).status).toBe(201);
    const all = await clientWith(["*"]);
    expect((await all.post(`/v1/projects/${project}/keys`, terms)).status).toBe(201);
    const inside = await clientWith(["keys:write", "gate:read"], {}, project);
    expect((await inside.post(`/v1/projects/${project}/keys`, terms)).status).toBe(201);
    expectError(await inside.post(`/v1/projects/${home}/keys`, terms), "not_found");
  });

  test("to rotate one; revoking requires only its scopes", async () => {
    const some = await clientWith(ALL_BUT_EVERYTHING);
    expectRefused(await some.post(`/v1/keys/${elsewhere.id}/rotate`, {}), "keys of another project");
    const all = await clientWith(["*"]);
    const rotated = await all.post(`/v1/keys/${elsewhere.id}/rotate`, {});
    expect(rotated.status).toBe(200);
    expect((await some.delete(`/v1/keys/${rotated.body.new_key_id}`)).status).toBe(200);
  });

  test("and deleting the default project, after which the key would work in another project, does too", async () => {
    const account = await server.account();
    const other = String((await account.post("/v1/projects", { name: "Other" })).body.id);
    const secret = (await makeBearer(account, ["projects:*", "gate:*"])).secret;
    const { body } = await account.get("/v1/projects");
    const first = (body.projects as { id: string }[]).at(-1)?.id;
    expectRefused(await server.client(secret).delete(`/v1/projects/${first}`), "the scope *");
    expect((await server.client(secret).delete(`/v1/projects/${other}`)).status).toBe(200);
    await account.post("/v1/projects", { name: "Third" });
    expect((await account.delete(`/v1/projects/${first}`)).status).toBe(200);
  });
});

test("a rejection costs one credit and is repeated under an Idempotency-Key", async () => {
  const account = await server.account({ balance: 10 });
  const { secret } = await makeBearer(account, ["keys:write"]);
  const options = { headers: { "idempotency-key": "grant" } };
  const first = await server.client(secret).post("/v1/keys", bearer(["*"]), options);
  const again = await server.client(secret).post("/v1/keys", bearer(["*"]), options);
  expect([first.status, again.text]).toEqual([403, first.text]);
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(8);
});
