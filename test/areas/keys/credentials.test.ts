import { beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { BEARER_PREFIX } from "../../../src/areas/keys/domain.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { makeProject } from "../projects/support.ts";
import { INVALID, makeBearer, makeKey, termsOf, verdictOf } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
beforeEach(async () => {
  account = await server.account({ balance: 10_000 });
});

test("a key with the prefix sm is a Bearer credential; a key with another prefix only works with verify", async () => {
  for (const prefix of [BEARER_PREFIX, "acme", "s", "smx", "sm_live", "sm_", "_"]) {
    const { secret } = await makeKey(account, { prefix, scopes: ["*"] });
    expect((await verdictOf(account, secret)).valid).toBe(true);
    const answer = await server.client(secret).get("/v1/gate");
    if (prefix === BEARER_PREFIX) expect(answer.status).toBe(200);
    else expectError(answer, "unauthorized");
  }
});

test("a managed key is charged to the account's balance and is rejected while the account is suspended", async () => {
  const client = server.client((await makeBearer(account, ["*"])).secret);
  await client.post("/v1/meter/m/refill", { amount: 1 });
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(9_998);
  await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true });
  expectError(await client.get("/v1/gate"), "forbidden");
});

describe("a key cannot grant scopes that it does not have", () => {
  const grant = (client: { post: AccountClient["post"] }, scopes: string[]) =>
    client.post("/v1/keys", termsOf({ prefix: "sm", scopes }));

  test("when it creates a key", async () => {
    const client = server.client((await makeBearer(account, ["keys:*", "gate:read"])).secret);
    for (const scopes of [["gate:read"], ["keys:read", "keys:write"], ["keys:*", "gate:read"]]) {
      expect((await grant(client, scopes)).status).toBe(201);
    }
    for (const scope of ["*", "gate:*", "gate:write", "meter:read"]) {
      const { error } = expectError(await grant(client, ["gate:read", scope]), "forbidden");
      expect(error.message).toContain(`the scope ${scope},`);
    }
    // Scopes of keys with another prefix have no meaning here.
    expect((await client.post("/v1/keys", termsOf({ scopes: ["*", "gate:*"] }))).status).toBe(201);
    // read and write together do not cover `*`, which can include more in the future.
    const halves = server.client(
      (await makeBearer(account, ["keys:write", "gate:read", "gate:write"])).secret,
    );
    expectError(await grant(halves, ["gate:*"]), "forbidden");
  });

  test("when it rotates a key", async () => {
    const client = server.client((await makeBearer(account, ["keys:write", "gate:read"])).secret);
    const [weaker, stronger] = [
      await makeBearer(account, ["gate:read"]),
      await makeBearer(account, ["gate:write"]),
    ];
    expect((await client.post(`/v1/keys/${weaker.id}/rotate`, {})).status).toBe(200);
    expectError(await client.post(`/v1/keys/${stronger.id}/rotate`, {}), "forbidden");
    const other = await makeKey(account, { scopes: ["anything"] });
    expect((await client.post(`/v1/keys/${other.id}/rotate`, {})).status).toBe(200);
    // The rejected request changed nothing: the key can still be rotated.
    expect((await account.post(`/v1/keys/${stronger.id}/rotate`, {})).status).toBe(200);
  });
});

describe("a key of one project", () => {
  test("sees only the keys of that project and creates keys of that project", async () => {
    const [project, other] = [await makeProject(account, "A"), await makeProject(account, "B")];
    const own = await makeBearer(account, ["*"], project);
    const client = server.client(own.secret);
    const foreign = [await makeKey(account), await makeKey(account, {}, other)];
    const created = await makeKey(client);
    expect((await account.get(`/v1/keys/${created.id}`)).body.project_id).toBe(project);
    const idsOf = async (one: { get: AccountClient["get"] }) =>
      ((await one.get("/v1/keys")).body.keys as { id: string }[]).map(({ id }) => id);
    expect(await idsOf(client)).toEqual([created.id, own.id]);
    expect(await idsOf(account)).toEqual([created.id, ...foreign.map(({ id }) => id).reverse(), own.id]);
    for (const { id, secret } of foreign) {
      expectError(await client.get(`/v1/keys/${id}`), "not_found");
      expectError(await client.post(`/v1/keys/${id}/rotate`, {}), "not_found");
      expectError(await client.delete(`/v1/keys/${id}`), "not_found");
      expect(await verdictOf(client, secret)).toEqual(INVALID);
      expect((await verdictOf(account, secret)).valid).toBe(true);
    }
    expectError(await client.post(`/v1/projects/${other}/keys`, termsOf()), "not_found");
    expect(await verdictOf(client, created.secret)).toMatchObject({ valid: true, project_id: project });
    // Its successor belongs to the same project, even if a key of the account rotates it.
    const rotated = await account.post(`/v1/keys/${created.id}/rotate`, {});
    expect((await client.get(`/v1/keys/${rotated.body.new_key_id}`)).body.project_id).toBe(project);
    expectError(await client.post("/v1/keys/rotate"), "forbidden");
    expectError(await client.post("/v1/meter/deduct", { amount: 1 }), "forbidden");
    expectError(await client.post("/v1/meter/refill", { amount: 1 }), "forbidden");
  });
});

describe("Idempotency-Key", () => {
  const headers = { "idempotency-key": "once" };

  test("a repeated creation returns the same secret and is charged once; another credential does not get it", async () => {
    const first = await account.post("/v1/keys", termsOf(), { headers });
    const again = await account.post("/v1/keys", termsOf(), { headers });
    expect(again.text).toBe(first.text);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(9_999);
    expect((await account.get("/v1/keys")).body.keys).toHaveLength(1);
    const other = server.client((await makeBearer(account, ["*"])).secret);
    const refused = await other.post("/v1/keys", termsOf(), { headers });
    expectError(refused, "conflict");
    expect(refused.text).not.toContain(String(first.body.secret));
  });

  test("a repeated rotation returns the same new key, also after a restart", async () => {
    const { id } = await makeKey(account);
    const first = await account.post(`/v1/keys/${id}/rotate`, {}, { headers });
    expect(first.status).toBe(200);
    await server.restart();
    const again = await server.client(account.key).post(`/v1/keys/${id}/rotate`, {}, { headers });
    expect(again.text).toBe(first.text);
  });
});

describe("a secret", () => {
  test("with one character changed, added, removed or swapped is not a key", async () => {
    const { secret } = await makeBearer(account, ["*"]);
    const unlimited = server.operator;
    const own = (await makeKey(unlimited)).secret;
    const characters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_- ";
    // Every position once; the property below tests more characters.
    for (let at = 0; at < own.length; at += 1) {
      const changed = own.slice(0, at) + (own[at] === "a" ? "b" : "a") + own.slice(at + 1);
      expect(await verdictOf(unlimited, changed)).toEqual(INVALID);
    }
    await fc.assert(
      fc.asyncProperty(
        fc.nat(secret.length - 1),
        fc.constantFrom(...characters),
        fc.constantFrom("change", "add", "remove", "swap"),
        async (at, character, how) => {
          const mutated = {
            change: secret.slice(0, at) + character + secret.slice(at + 1),
            add: secret.slice(0, at) + character + secret.slice(at),
            remove: secret.slice(0, at) + secret.slice(at + 1),
            swap: secret.slice(0, at) + (secret[at + 1] ?? "") + (secret[at] ?? "") + secret.slice(at + 2),
          }[how];
          // Trailing characters that a header cannot contain are removed before the server sees them.
          fc.pre(mutated.trim() !== secret);
          expectError(await server.client(mutated).get("/v1/gate"), "unauthorized");
        },
      ),
      { numRuns: 150 },
    );
    expect((await server.client(secret).get("/v1/gate")).status).toBe(200);
  });

  test("is only in the response that created it, in no later response, log or file", async () => {
    const project = await makeProject(account);
    const keys = [
      await makeKey(account),
      await makeBearer(account, ["*"]),
      await makeBearer(account, ["*"], project),
    ];
    const rotated = await account.post(
      `/v1/keys/${keys[0]?.id}/rotate`,
      {},
      { headers: { "idempotency-key": "r" } },
    );
    const secrets = [...keys.map(({ secret }) => secret), String(rotated.body.new_secret)];
    const bodies = secrets.map((secret) => secret.split("_").at(-2) ?? "");
    expect(bodies.map(({ length }) => length)).toEqual([43, 43, 43, 43]);
    const answers: string[] = [];
    for (const { id, secret } of keys) {
      answers.push((await account.get(`/v1/keys/${id}`)).text);
      answers.push((await account.post("/v1/keys/verify", { secret })).text);
      answers.push((await server.client(secret).get("/v1/keys")).text);
      answers.push((await account.get(`/v1/nothing/${secret}`)).text.replaceAll(secret, ""));
    }
    answers.push((await account.get("/v1/keys")).text);
    await account.delete(`/v1/keys/${keys[1]?.id}`);
    const shown = [...answers, JSON.stringify(server.logs)].join("\n");
    for (const body of bodies) expect(shown.includes(body)).toBe(false);
    await server.restart();
    const files = readdirSync(server.folder).map((name) => readFileSync(join(server.folder, name)));
    expect(files.length).toBeGreaterThan(1);
    for (const body of bodies) {
      for (const file of files) expect(file.includes(body)).toBe(false);
    }
  });
});
