import { beforeEach, describe, expect, test } from "bun:test";
import {
  KEY_ROLES_MAX,
  PERMISSIONS_MAX,
  PROJECT_ROLES_MAX,
  ROLE_PERMISSIONS_MAX,
} from "../../../src/areas/keys/domain.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, type Scenario } from "../../support/scenario.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { check } from "../check/support.ts";
import { makeBearer, makeKey, termsOf, verdictOf } from "./support.ts";

const server = useTestServer({ manualClock: true });
const PATH = "/v1/keys/roles";
const ROLE = { description: "Writes documents.", permissions: ["documents.read", "documents.write"] };
let account: AccountClient;
beforeEach(async () => {
  account = await server.account();
});

async function saved(name: string, permissions: readonly string[], client: Client = account): Promise<void> {
  const { status, text } = await client.put(`${PATH}/${name}`, { permissions });
  expect([200, 201], text).toContain(status);
}

/** A project, and a key with all its rights. */
async function project(slug: string): Promise<{ id: string; client: Client }> {
  const { body } = await account.post("/v1/projects", { slug, name: slug });
  const id = String(body["id"]);
  return { id, client: server.client((await makeBearer(account, ["*"], id)).secret) };
}

const existing: Pick<Scenario, "before"> = { before: ({ account }) => account.put(`${PATH}/editor`, ROLE) };
const inUse: Pick<Scenario, "before"> = {
  before: async ({ account }) => {
    await account.put(`${PATH}/editor`, ROLE);
    await makeKey(account, { roles: ["editor"] });
  },
};
const noKey = { name: "no key", as: "nobody", status: 401, code: "unauthorized" } as const;
const withoutCredits = (request: Scenario["request"]): Scenario => ({
  name: "no credits are needed",
  request,
  account: { balance: 0 },
  status: 200,
});

const badName = (request: Scenario["request"]): Scenario => ({
  name: `${request[1]}`,
  request,
  status: 400,
  code: "validation_error",
});
const reusedKey = (request: Scenario["request"]): Scenario => ({
  name: "a used Idempotency-Key",
  before: ({ account }) =>
    account.send("PUT", `${PATH}/editor`, { permissions: [] }, { headers: { "idempotency-key": "used" } }),
  headers: { "idempotency-key": "used" },
  request,
  status: 409,
  code: "conflict",
});

describe("PUT /v1/keys/roles/{name}", () => {
  const put = (body: unknown, name = "editor"): Scenario["request"] => ["PUT", `${PATH}/${name}`, body];
  const rejected = (name: string, change: object, field: string): Scenario => ({
    name,
    status: 400,
    code: "validation_error",
    request: put({ ...ROLE, ...change }),
    after: (_, { body }) => expect(Object.keys(body["fields"] as object)).toEqual([field]),
  });
  const texts = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`);
  endpoint(() => server, "PUT /v1/keys/roles/{name}", [
    { name: "a new role", request: put(ROLE), status: 201, holds: { name: "editor", ...ROLE } },
    {
      name: "a change replaces all",
      ...existing,
      request: put({ permissions: ["a", "b", "a"] }),
      status: 200,
      holds: { name: "editor", description: null, permissions: ["a", "b"] },
    },
    { ...withoutCredits(put(ROLE)), status: 201 },
    { name: "no permissions", request: put({ permissions: [] }), status: 201, holds: { permissions: [] } },
    {
      name: "500 permissions",
      request: put({ permissions: texts(ROLE_PERMISSIONS_MAX) }),
      status: 201,
    },
    rejected("501 permissions", { permissions: texts(ROLE_PERMISSIONS_MAX + 1) }, "permissions"),
    rejected("a permission that is empty", { permissions: [""] }, "permissions.0"),
    rejected("a permission of 256 characters", { permissions: ["a".repeat(256)] }, "permissions.0"),
    rejected("no list", { permissions: undefined }, "permissions"),
    rejected("a description that is too long", { description: "d".repeat(501) }, "description"),
    {
      name: "a name with a space",
      request: put(ROLE, "a%20b"),
      status: 400,
      code: "validation_error",
    },
    reusedKey(put(ROLE)),
    { ...noKey, request: put(ROLE) },
  ]);

  test("at most 100 roles in a project", async () => {
    for (let index = 0; index < PROJECT_ROLES_MAX; index += 1) await saved(`r${index}`, []);
    expectError(await account.put(`${PATH}/one`, ROLE), "role_limit_exceeded");
    await saved("r7", ["a"]);
    expect((await account.delete(`${PATH}/r7`)).status).toBe(204);
    await saved("one", []);
    await saved("one", [], (await project("second")).client);
  });

  test("the names of other routes are names of roles as well", async () => {
    for (const name of ["usage", "rotate", "import", "roles", "a:b.c-d_e"]) {
      await saved(name, [name]);
      expect((await account.get(`${PATH}/${name}`)).body).toMatchObject({ name, permissions: [name] });
    }
  });
});

describe("GET", () => {
  endpoint(() => server, "GET /v1/keys/roles/{name}", [
    { name: "a role", ...existing, request: ["GET", `${PATH}/editor`], status: 200, holds: ROLE },
    { name: "an unknown role", request: ["GET", `${PATH}/editor`], status: 404, code: "not_found" },
    badName(["GET", `${PATH}/a%20b`]),
    { ...noKey, request: ["GET", `${PATH}/editor`] },
  ]);

  endpoint(() => server, "GET /v1/keys/roles", [
    { name: "none", request: ["GET", PATH], status: 200, holds: { roles: [] } },
    {
      name: "a role",
      ...existing,
      request: ["GET", PATH],
      status: 200,
      holds: { roles: [{ name: "editor", ...ROLE }] },
    },
    withoutCredits(["GET", PATH]),
    badName(["GET", `${PATH}?limit=0`]),
    { ...noKey, request: ["GET", PATH] },
  ]);

  test("pages, newest first; those with long permissions end early", async () => {
    const page = async (query: string) => {
      const { body } = await account.get(`${PATH}?${query}`);
      const { roles, cursor } = body as { roles: { name: string }[]; cursor?: string };
      return { names: roles.map(({ name }) => name), cursor };
    };
    for (const name of ["a", "b", "c"]) await saved(name, []);
    const first = await page("limit=2");
    expect(first.names).toEqual(["c", "b"]);
    expect(await page(`limit=2&cursor=${first.cursor}`)).toEqual({ names: ["a"], cursor: undefined });
    const long = Array.from({ length: 250 }, (_, index) => `${index}`.padEnd(250, "p"));
    for (let index = 0; index < 10; index += 1) await saved(`long${index}`, long);
    const { names, cursor } = await page("");
    expect(names.length).toBeLessThan(10);
    expect((await page(`cursor=${cursor}`)).names).toHaveLength(13 - names.length);
  });
});

describe("DELETE /v1/keys/roles/{name}", () => {
  const request: Scenario["request"] = ["DELETE", `${PATH}/editor`];
  endpoint(() => server, "DELETE /v1/keys/roles/{name}", [
    { name: "a role", ...existing, request, status: 204 },
    { name: "an unknown role", request, status: 404, code: "not_found" },
    badName(["DELETE", `${PATH}/a%20b`]),
    { name: "a role in use", ...inUse, request, status: 409, code: "role_in_use" },
    { ...noKey, request },
  ]);

  const remove = async (name = "editor", client: Client = account) => client.delete(`${PATH}/${name}`);

  test("a key that loses the role, is revoked or has expired does not hold it", async () => {
    await saved("editor", ["a"]);
    const expires_at = new Date(server.clock.now() + 10_000).toISOString();
    const [first, second] = [await makeKey(account, { roles: ["editor"] }), await makeKey(account)];
    await makeKey(account, { roles: ["editor"], expires_at });
    await account.patch(`/v1/keys/${second.id}`, { roles: ["editor"] });
    expectError(await remove(), "role_in_use");
    await account.delete(`/v1/keys/${first.id}`);
    expectError(await remove(), "role_in_use");
    await account.patch(`/v1/keys/${second.id}`, { roles: null });
    expectError(await remove(), "role_in_use");
    await server.clock.advance(10_000);
    expect((await remove()).status).toBe(204);
    const gone = `SELECT count(*) AS n FROM keys_with_roles JOIN keys ON ref = key_ref
      WHERE revoked_at IS NOT NULL OR roles IS NULL`;
    expect(server.server.kernel.db.number(gone)()).toBe(0);
  });

  test("a rotated key holds it, the old one until its grace period has passed", async () => {
    await saved("editor", ["a"]);
    const { id } = await makeKey(account, { roles: ["editor"] });
    const { body } = await account.post(`/v1/keys/${id}/rotate`, { grace_hours: 1 });
    expect(await verdictOf(account, String(body["new_secret"]))).toMatchObject({ permissions: ["a"] });
    await account.delete(`/v1/keys/${body["new_key_id"]}`);
    expectError(await remove(), "role_in_use");
    await server.clock.advance(3_600_000);
    expect((await remove()).status).toBe(204);
  });

  test("keys of other projects and accounts do not hold it, those of the account hold that of the default project", async () => {
    const other = await project("other");
    await saved("editor", ["a"], other.client);
    await saved("editor", ["a"]);
    await makeKey(account, { roles: ["editor"] });
    const stranger = await server.account();
    await saved("editor", ["a"], stranger);
    await makeKey(stranger, { roles: ["editor"] });
    expect((await remove("editor", other.client)).status).toBe(204);
    expectError(await remove(), "role_in_use");
  });
});

describe("a key", () => {
  test("has permissions and roles, which responses, lists and updates show", async () => {
    await saved("editor", ["documents.write"]);
    await saved("viewer", ["documents.read"]);
    const given = { permissions: ["billing.read"], roles: ["editor", "viewer"] };
    const created = (await account.post("/v1/keys", termsOf(given))).body;
    expect(created).toMatchObject(given);
    const path = `/v1/keys/${created["key_id"]}`;
    expect((await account.get(path)).body).toMatchObject(given);
    expect((await account.get("/v1/keys")).body).toMatchObject({ keys: [given] });
    const { body } = await account.patch(path, { roles: ["viewer", "viewer"], permissions: null });
    expect(body).toMatchObject({ permissions: [], roles: ["viewer"] });
    expect((await account.patch(path, { name: "n" })).body).toMatchObject({ roles: ["viewer"] });
  });

  test.each([
    [{ permissions: Array.from({ length: PERMISSIONS_MAX + 1 }, (_, index) => `p${index}`) }, "permissions"],
    [{ permissions: [""] }, "permissions.0"],
    [{ permissions: ["a".repeat(256)] }, "permissions.0"],
    [{ roles: Array.from({ length: KEY_ROLES_MAX + 1 }, () => "editor") }, "roles"],
    [{ roles: ["a b"] }, "roles.0"],
    [{ roles: ["editor", "absent"] }, "roles.1"],
    [{ prefix: "sm", scopes: ["keys:read"], permissions: ["a"] }, "permissions"],
    [{ prefix: "sm", scopes: ["keys:read"], roles: ["editor"] }, "roles"],
  ])("with %j is a 400", async (more, field) => {
    await saved("editor", ["a"]);
    const expected = async (response: Promise<Awaited<ReturnType<Client["post"]>>>, name = field) =>
      expect(Object.keys(expectError(await response, "validation_error").fields ?? {})).toEqual([name]);
    await expected(account.post("/v1/keys", termsOf(more)));
    const { prefix, scopes, ...changes } = more as { prefix?: string; scopes?: string[] };
    const { id } = await makeKey(account, prefix === undefined ? {} : { prefix, scopes });
    await expected(account.patch(`/v1/keys/${id}`, changes));
    if (prefix !== undefined) return;
    const key = { hash: "a".repeat(64), name: "k", ...changes };
    await expected(account.post("/v1/keys/import", { keys: [key] }), `keys.0.${field}`);
  });

  test("may have as many as are allowed", async () => {
    const roles = Array.from({ length: KEY_ROLES_MAX }, (_, index) => `r${index}`);
    const texts = (from: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${from}.${index}`);
    for (const role of roles) await saved(role, texts(role, ROLE_PERMISSIONS_MAX));
    const { secret } = await makeKey(account, { roles, permissions: texts("own", PERMISSIONS_MAX) });
    const { permissions } = (await verdictOf(account, secret)) as { permissions: string[] };
    expect(permissions).toHaveLength(PERMISSIONS_MAX + KEY_ROLES_MAX * ROLE_PERMISSIONS_MAX);
  });

  test("that is imported has both", async () => {
    await saved("editor", ["documents.write"]);
    const key = { hash: new Bun.CryptoHasher("sha256").update("theirs").digest("hex"), name: "k" };
    const { status } = await account.post("/v1/keys/import", {
      keys: [{ ...key, permissions: ["billing.read"], roles: ["editor"] }],
    });
    expect(status).toBe(201);
    expect(await verdictOf(account, "theirs")).toMatchObject({
      scopes: [],
      roles: ["editor"],
      permissions: ["billing.read", "documents.write"],
    });
  });
});

describe("verify", () => {
  const verify = async (secret: string, require: unknown, client: Client = account) =>
    (await client.post("/v1/keys/verify", { secret, require })).body["error"];

  test("returns roles, and each permission once", async () => {
    await saved("editor", ["documents.read", "documents.write", "billing.read"]);
    await saved("viewer", ["documents.read"]);
    const { secret } = await makeKey(account, { permissions: ["billing.read"], roles: ["viewer", "editor"] });
    const expected = {
      valid: true,
      scopes: ["orders:read"],
      roles: ["viewer", "editor"],
      permissions: ["billing.read", "documents.read", "documents.write"],
    };
    expect(await verdictOf(account, secret)).toMatchObject(expected);
    expect(await verdictOf(account, secret)).toMatchObject(expected);
    const { body } = await account.post("/v1/keys/verify", { secret, require: ["absent"] });
    expect(body).toMatchObject({ ...expected, valid: false, error: "insufficient_scope" });
    const plain = await makeKey(account);
    expect(await verdictOf(account, plain.secret)).toMatchObject({ roles: [], permissions: [] });
  });

  test("a required text is a scope, a permission or a role's, with stars as in scopes", async () => {
    await saved("editor", ["documents.*", "billing.read"]);
    const { secret } = await makeKey(account, {
      scopes: ["orders:*"],
      permissions: ["reports/*", "users.read"],
      roles: ["editor"],
    });
    for (const text of ["orders:read", "reports/7", "users.read", "documents.write", "billing.read"]) {
      expect(await verify(secret, [text])).toBe(null as never);
      expect(await verify(secret, { and: [text] })).toBe(null as never);
    }
    for (const text of ["users.write", "billing.write", "documents", "editor"]) {
      expect(await verify(secret, [text])).toBe("insufficient_scope");
      expect(await verify(secret, { or: [text] })).toBe("insufficient_permission");
    }
    expect(await verify(secret, { and: ["orders:read", { or: ["users.write", "documents.read"] }] })).toBe(
      null as never,
    );
    await saved("all", ["*"]);
    const key = await makeKey(account, { roles: ["all"] });
    expect(await verify(key.secret, ["anything"])).toBe(null as never);
  });

  test("a changed role applies from the next request, also of keys that were just verified", async () => {
    await saved("editor", ["a"]);
    const { secret, id } = await makeKey(account, { roles: ["editor"] });
    expect(await verify(secret, ["a"])).toBe(null as never);
    await saved("editor", ["b"]);
    expect(await verify(secret, ["a"])).toBe("insufficient_scope");
    expect(await verify(secret, ["b"])).toBe(null as never);
    expect(await verdictOf(account, secret)).toMatchObject({ permissions: ["b"] });
    await account.patch(`/v1/keys/${id}`, { roles: [], permissions: ["c"] });
    expect(await verdictOf(account, secret)).toMatchObject({ roles: [], permissions: ["c"] });
    expect(await verify(secret, ["b"])).toBe("insufficient_scope");
    await account.delete(`${PATH}/editor`);
    await saved("editor", ["d"]);
    await account.patch(`/v1/keys/${id}`, { roles: ["editor"] });
    expect(await verdictOf(account, secret)).toMatchObject({ permissions: ["c", "d"] });
  });

  test("a key has the roles of its project, and one of the account those of the default project", async () => {
    const other = await project("other");
    await saved("editor", ["of.default"]);
    await saved("editor", ["of.other"], other.client);
    await saved("only", ["x"], other.client);
    const [ofAccount, ofOther] = [
      await makeKey(account, { roles: ["editor"] }),
      await makeKey(account, { roles: ["editor", "only"] }, other.id),
    ];
    expect(await verdictOf(account, ofAccount.secret)).toMatchObject({ permissions: ["of.default"] });
    expect(await verdictOf(account, ofOther.secret)).toMatchObject({ permissions: ["of.other", "x"] });
    expect(await verdictOf(other.client, ofOther.secret)).toMatchObject({ permissions: ["of.other", "x"] });
    expectError(await account.post("/v1/keys", termsOf({ roles: ["only"] })), "validation_error");
    expectError(await account.get(`${PATH}/only`), "not_found");
  });

  test("once its project is the default one no more, a key of the account has the roles of the next", async () => {
    const other = await project("other");
    await saved("editor", ["of.default"]);
    await saved("editor", ["of.other"], other.client);
    const { secret } = await makeKey(account, { roles: ["editor"] });
    expect(await verdictOf(account, secret)).toMatchObject({ permissions: ["of.default"] });
    const { projects } = (await account.get("/v1/projects")).body as { projects: { id: string }[] };
    const first = projects.find(({ id }) => id !== other.id);
    const { status, text } = await account.delete(`/v1/projects/${first?.id}`);
    expect(status, text).toBeLessThan(300);
    expect(await verdictOf(account, secret)).toMatchObject({ permissions: ["of.other"] });
  });

  test("the same in a check, and in one of a proxy", async () => {
    await saved("editor", ["documents.*"]);
    const { secret } = await makeKey(account, { permissions: ["billing.read"], roles: ["editor"] });
    const and = { and: ["documents.write", "billing.read"] };
    expect(await check(account, { secret, require: and })).toMatchObject({ allowed: true });
    expect(await check(account, { secret, require: { or: ["users.read"] } })).toMatchObject({
      code: "insufficient_permission",
      status: 403,
    });
    const { results } = (
      await account.post("/v1/check", {
        checks: [
          { secret, require: and },
          { secret, require: ["x"] },
        ],
      })
    ).body as { results: object[] };
    expect(results).toMatchObject([{ allowed: true }, { code: "insufficient_scope" }]);
    const through = (query: string) =>
      server.client(secret).send("GET", `/v1/check/http?${query}`, undefined, {
        headers: { "x-ninefold-key": account.key ?? "" },
      });
    expect((await through("require=documents.write&require=billing.read")).status).toBe(200);
    expect((await through(`require=${encodeURIComponent(JSON.stringify(and))}`)).status).toBe(200);
    expectError(await through("require=users.read"), "insufficient_scope");
    expectError(
      await through(`require=${encodeURIComponent('{"or":["users.read"]}')}`),
      "insufficient_permission",
    );
  });
});

test("changes of roles are in the audit log, with what they changed", async () => {
  await saved("editor", ["a"]);
  await saved("editor", ["a"]);
  await saved("editor", ["b"]);
  await account.delete(`${PATH}/editor`);
  const { entries } = (await account.get("/v1/audit?target_type=key_role")).body as { entries: object[] };
  expect(entries).toMatchObject([
    { action: "keys.roles.delete", summary: "Role editor deleted", before: { permissions: ["b"] } },
    { action: "keys.roles.save", summary: "Role editor changed", after: { permissions: ["b"] } },
    { action: "keys.roles.save", summary: "Role editor created", target: { type: "key_role", id: "editor" } },
  ]);
});

test("a deleted project has no roles any more", async () => {
  const other = await project("other");
  await saved("editor", ["a"], other.client);
  await makeKey(account, { roles: ["editor"] }, other.id);
  await account.delete(`/v1/projects/${other.id}`);
  await server.clock.advance(60_000);
  for (const table of ["key_roles", "keys_with_roles"])
    expect(
      server.server.kernel.db.number(
        `SELECT count(*) AS n FROM ${table} WHERE project_ref = (SELECT max(ref) FROM projects)`,
      )(),
    ).toBe(0);
});
