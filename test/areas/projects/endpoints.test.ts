import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  DESCRIPTION_LENGTH_MAX,
  NAME_LENGTH_MAX,
  PROJECT_ID_LENGTH,
} from "../../../src/areas/projects/domain.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { defaultProjectOf, makeProject, naming, type ProjectItem, projectsOf } from "./support.ts";

const NOW = "2026-03-10T12:00:00.000Z";
const NAME_MESSAGE = "must be a text of 1 to 100 characters";
const DESCRIPTION_MESSAGE = "must be a text of at most 500 characters, or null";
const CURSOR_MESSAGE = "is not a cursor of this list: use the one that the page before gave";
const LIMIT_MESSAGE = "must be an integer from 1 to 100";
const ABSENT = `proj_${"0".repeat(PROJECT_ID_LENGTH)}`;
const LONGEST_NAME = "📦".repeat(NAME_LENGTH_MAX);
const LONGEST_DESCRIPTION = "📦".repeat(DESCRIPTION_LENGTH_MAX);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Expects these names, newest first, and the default project. */
function leaves(...names: readonly string[]): NonNullable<Scenario["after"]> {
  return async ({ account }) => {
    expect((await projectsOf(account)).map(({ name }) => name)).toEqual([...names, "Default"]);
  };
}

function created(name: string, body: object, slug: string, description: string | null = null): Scenario {
  const expected = {
    name: (body as ProjectItem).name,
    slug,
    description,
    time_zone: "UTC",
    review: false,
    created_at: NOW,
    updated_at: NOW,
  };
  return {
    name,
    request: ["POST", "/v1/projects", body],
    status: 201,
    holds: expected,
    after: async (world, answer) => {
      expect(String(answer.body.id)).toMatch(/^proj_[0-9A-Za-z]{20}$/);
      const { warnings, ...made } = answer.body;
      expect(Object.keys(made).sort()).toEqual([
        "created_at",
        "description",
        "id",
        "name",
        "review",
        "slug",
        "time_zone",
        "updated_at",
      ]);
      expect((await world.account.get(`/v1/projects/${answer.body.id}`)).body).toEqual(made);
    },
  };
}

function refused(name: string, body: unknown, fields: object): Scenario {
  return {
    name,
    request: ["POST", "/v1/projects", body],
    status: 400,
    code: "validation_error",
    holds: { fields },
    after: leaves(),
  };
}

const BAD_NAMES = ["", `${LONGEST_NAME}x`, 5, null, ["a"]];
const BAD_DESCRIPTIONS = [`${LONGEST_DESCRIPTION}x`, 5, true];

describe("POST /v1/projects", () => {
  endpoint(() => server, "POST /v1/projects", [
    created("only a name", { name: "Shop" }, "shop"),
    created("with a description", { name: "Shop", description: "All of it" }, "shop", "All of it"),
    created("a description of null", { name: "Shop", description: null }, "shop"),
    created("an empty description", { name: "Shop", description: "" }, "shop", ""),
    created("the longest name, of which no slug is left", { name: LONGEST_NAME }, "project"),
    created(
      "the longest description",
      { name: "S", description: LONGEST_DESCRIPTION },
      "s",
      LONGEST_DESCRIPTION,
    ),
    created("a slug like that of the default project", { name: "Default" }, "default-2"),
    created("unknown fields are ignored", { name: "Shop", id: "mine", slug: "mine" }, "shop"),
    {
      ...created("free of charge, also with an empty balance", { name: "Shop" }, "shop"),
      account: { balance: 0 },
    },
    ...BAD_NAMES.map((name) =>
      refused(`the name ${JSON.stringify(name).slice(0, 12)}`, { name }, { name: [NAME_MESSAGE] }),
    ),
    ...BAD_DESCRIPTIONS.map((description) =>
      refused(
        `the description ${JSON.stringify(description).slice(0, 12)}`,
        { name: "Shop", description },
        {
          description: [DESCRIPTION_MESSAGE],
        },
      ),
    ),
    refused("no name", {}, { name: [`is required: it ${NAME_MESSAGE}`] }),
    {
      name: "without a key",
      as: "nobody",
      request: ["POST", "/v1/projects", { name: "Shop" }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "an Idempotency-Key used for another body",
      headers: { "idempotency-key": "k" },
      before: ({ account }) =>
        account.post("/v1/projects", { name: "Shop" }, { headers: { "idempotency-key": "k" } }),
      request: ["POST", "/v1/projects", { name: "Shop", description: "another" }],
      status: 409,
      code: "conflict",
      after: leaves("Shop"),
    },
  ]);
});

/** Creates projects one after another. */
function holding(...names: readonly string[]): (world: World) => Promise<void> {
  return async ({ account }) => {
    for (const name of names) expect((await account.post("/v1/projects", { name })).status).toBe(201);
  };
}

function badQuery(query: string, fields: object): Scenario {
  return {
    name: `the query ${query}`,
    request: ["GET", `/v1/projects?${query}`],
    status: 400,
    code: "validation_error",
    holds: { fields },
  };
}

const FOREIGN_CURSORS = ["x", "WzFd=", "WyJhIl0", "e30", "W10", "WzEuNV0", "%20"];

describe("GET /v1/projects", () => {
  endpoint(() => server, "GET /v1/projects", [
    {
      name: "only the default project",
      request: ["GET", "/v1/projects"],
      status: 200,
      after: (_, { body }) => {
        const [item, ...more] = body.projects as Record<string, unknown>[];
        expect(more).toEqual([]);
        expect(item).toEqual({
          id: expect.stringMatching(/^proj_[0-9A-Za-z]{20}$/),
          name: "Default",
          slug: "default",
          description: null,
          time_zone: "UTC",
          review: false,
          created_at: NOW,
        });
        expect(Object.keys(body)).toEqual(["projects"]);
      },
    },
    {
      name: "ten by default, newest first, with a cursor",
      before: holding(...Array.from({ length: 10 }, (_, index) => `P${index}`)),
      account: { balance: 0 },
      request: ["GET", "/v1/projects"],
      status: 200,
      after: (_, { body }) => {
        const names = (body.projects as ProjectItem[]).map(({ name }) => name);
        expect(names).toEqual(Array.from({ length: 10 }, (_, index) => `P${9 - index}`));
        expect(typeof body.cursor).toBe("string");
      },
    },
    {
      name: "a full last page has no cursor",
      before: holding("A"),
      request: ["GET", "/v1/projects?limit=2"],
      status: 200,
      after: (_, { body }) => expect(Object.keys(body)).toEqual(["projects"]),
    },
    ...["0", "101", "1.5", "-1", "x", ""].map((limit) =>
      badQuery(`limit=${limit}`, { limit: [LIMIT_MESSAGE] }),
    ),
    ...FOREIGN_CURSORS.map((cursor) => badQuery(`cursor=${cursor}`, { cursor: [CURSOR_MESSAGE] })),
    {
      name: "without a key",
      as: "nobody",
      request: ["GET", "/v1/projects"],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

/** Requests that every endpoint of a single project rejects. */
function common(method: string, last = "", body?: object): Scenario[] {
  const missing = [ABSENT, "default", "proj_", "%20", "x".repeat(64)].map(
    (id): Scenario => ({
      name: `the id ${id.slice(0, 12)}`,
      request: [method, `/v1/projects/${id}${last}`, body],
      status: 404,
      code: "not_found",
      after: leaves(),
    }),
  );
  return [
    ...missing,
    naming({
      name: "another account's project",
      make: ({ server }) => defaultProjectOf(server.operator),
      ask: (id) => [method, `/v1/projects/${id}${last}`, body],
      status: 404,
      code: "not_found",
      after: async ({ server }) => expect((await projectsOf(server.operator)).length).toBeGreaterThan(0),
    }),
    {
      name: "an id that is too long",
      request: [method, `/v1/projects/${"x".repeat(65)}${last}`, body],
      status: 400,
      code: "validation_error",
      holds: { fields: { id: ["must be a project id, such as proj_…"] } },
    },
    {
      name: "without a key",
      as: "nobody",
      request: [method, `/v1/projects/${ABSENT}${last}`, body],
      status: 401,
      code: "unauthorized",
    },
  ];
}

/** An Idempotency-Key that was used for another request. */
function conflicting(method: string, body?: object): Scenario {
  return naming({
    name: "an Idempotency-Key used for another request",
    headers: { "idempotency-key": "k" },
    make: async ({ account }) => {
      await account.post("/v1/projects", { name: "Shop" }, { headers: { "idempotency-key": "k" } });
      return defaultProjectOf(account);
    },
    ask: (id) => [method, `/v1/projects/${id}`, body],
    status: 409,
    code: "conflict",
    after: leaves("Shop"),
  });
}

const MADE = {
  name: "Shop",
  slug: "shop",
  description: "All of it",
  time_zone: "UTC",
  review: false,
  created_at: NOW,
};

/** Creates the project of most scenarios. */
function makeShop({ account }: World): Promise<string> {
  return makeProject(account, "Shop", "All of it");
}

describe("GET /v1/projects/{id}", () => {
  endpoint(() => server, "GET /v1/projects/{id}", [
    naming({
      name: "a project",
      account: { balance: 0 },
      make: makeShop,
      ask: (id) => ["GET", `/v1/projects/${id}`],
      status: 200,
      holds: { ...MADE, updated_at: NOW },
    }),
    naming({
      name: "the default project",
      make: ({ account }) => defaultProjectOf(account),
      ask: (id) => ["GET", `/v1/projects/${id}`],
      status: 200,
      holds: { name: "Default", slug: "default", description: null },
    }),
    ...common("GET"),
  ]);
});

/** An update whose result is read back. */
function changed(name: string, body: object, expected: object): Scenario {
  return naming({
    name,
    account: { balance: 0 },
    make: makeShop,
    ask: (id) => ["PATCH", `/v1/projects/${id}`, body],
    status: 200,
    holds: { ...MADE, ...expected },
    after: async ({ account }, answer) => {
      const { warnings, ...changed } = answer.body;
      expect((await account.get(`/v1/projects/${answer.body.id}`)).body).toEqual(changed);
    },
  });
}

function badChange(body: object, fields: object): Scenario {
  return naming({
    name: `the body ${JSON.stringify(body).slice(0, 24)}`,
    make: makeShop,
    ask: (id) => ["PATCH", `/v1/projects/${id}`, body],
    status: 400,
    code: "validation_error",
    holds: { fields },
    after: async ({ account }) => expect((await projectsOf(account))[0]).toMatchObject(MADE),
  });
}

describe("PATCH /v1/projects/{id}", () => {
  endpoint(() => server, "PATCH /v1/projects/{id}", [
    changed("only the name: the slug never changes", { name: "Store" }, { name: "Store" }),
    changed("the description alone", { description: "New" }, { description: "New" }),
    changed("both", { name: "Store", description: "New" }, { name: "Store", description: "New" }),
    changed("null clears the description", { description: null }, { description: null }),
    changed("nothing, so nothing changes", {}, {}),
    changed("unknown fields are ignored", { id: "mine", created_at: "now" }, {}),
    ...BAD_NAMES.map((name) => badChange({ name }, { name: [NAME_MESSAGE] })),
    ...BAD_DESCRIPTIONS.map((description) =>
      badChange({ description }, { description: [DESCRIPTION_MESSAGE] }),
    ),
    badChange({ slug: "new" }, { slug: ["cannot be changed: omit it"] }),
    badChange({ name: "New", slug: "shop" }, { slug: ["cannot be changed: omit it"] }),
    conflicting("PATCH", { name: "New" }),
    ...common("PATCH", "", { name: "New" }),
  ]);
});

describe("DELETE /v1/projects/{id}", () => {
  endpoint(() => server, "DELETE /v1/projects/{id}", [
    naming({
      name: "a project, and no other",
      account: { balance: 0 },
      make: async (world) => {
        await makeProject(world.account, "Other");
        return makeShop(world);
      },
      ask: (id) => ["DELETE", `/v1/projects/${id}`],
      status: 200,
      body: { success: true, deleted_at: NOW },
      after: leaves("Other"),
    }),
    naming({
      name: "the default project while it is the only one",
      make: ({ account }) => defaultProjectOf(account),
      ask: (id) => ["DELETE", `/v1/projects/${id}`],
      status: 403,
      code: "forbidden",
      after: leaves(),
    }),
    conflicting("DELETE"),
    ...common("DELETE"),
  ]);
});

const NOTHING = { flags: 0, monitors: 0, relays: 0, buckets: 0, keys: 0, locks: 0, chains: 0, meters: 0 };

describe("GET /v1/projects/{id}/overview", () => {
  endpoint(() => server, "GET /v1/projects/{id}/overview", [
    naming({
      name: "a new project",
      make: makeShop,
      ask: (id) => ["GET", `/v1/projects/${id}/overview`],
      status: 200,
      holds: {
        project_name: "Shop",
        resources: NOTHING,
        usage: { meter_balance: 100, last_activity: null },
      },
    }),
    ...common("GET", "/overview"),
  ]);
});

describe("X-Ninefold-Project", () => {
  const inProject = (id: unknown) => ({ headers: { "x-ninefold-project": String(id) } });

  test("a key of the account with the scope * selects the project of a request", async () => {
    const account = await server.account();
    const { id } = (await account.post("/v1/projects", { name: "Shop" })).body;
    const flag = { flag_key: "in-the-shop", enabled: true };
    expect((await account.post("/v1/gate", flag, inProject(id))).status).toBe(201);
    expect((await account.get("/v1/gate")).body["flags"]).toEqual([]);
    expect((await account.get("/v1/gate", inProject(id))).body["flags"]).toEqual(["in-the-shop"]);
    const stranger = await server.account();
    expectError(await stranger.get("/v1/gate", inProject(id)), "not_found");
    await account.delete(`/v1/projects/${id}`);
    expectError(await account.get("/v1/gate", inProject(id)), "not_found");
  });

  test("403 for a key with fewer scopes, and for one of another project", async () => {
    const account = await server.account();
    const { id } = (await account.post("/v1/projects", { name: "Shop" })).body;
    const [first] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
    const terms = { prefix: "sm", name: "k" };
    const few = await account.post("/v1/keys", { ...terms, scopes: ["gate:read"] });
    const bound = await account.post(`/v1/projects/${id}/keys`, { ...terms, scopes: ["*"] });
    const other = (await account.post("/v1/projects", { name: "Blog" })).body["id"];
    for (const { body } of [few, bound])
      expectError(await server.client(String(body["secret"])).get("/v1/gate", inProject(other)), "forbidden");
    const same = await server.client(String(bound.body["secret"])).get("/v1/gate", inProject(id));
    expect(same.status).toBe(200);
    expect(first).toBeDefined();
  });
});
