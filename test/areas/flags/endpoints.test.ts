import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  DESCRIPTION_LENGTH_MAX,
  FLAG_KEY_LENGTH_MAX,
  RESERVED_KEY,
} from "../../../src/areas/flags/domain.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const KEY_MESSAGE =
  "must be 1 to 64 lower-case letters, digits, dashes or underscores, starting with a letter or digit";
const DESCRIPTION_MESSAGE = "must be a string of at most 256 characters";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Creates flags in this order. */
function holding(...flags: readonly object[]): (world: World) => Promise<void> {
  return async ({ account }) => {
    for (const flag of flags) expect((await account.post("/v1/gate", flag)).status).toBe(201);
  };
}

/** Expects exactly these flags, newest first. */
function leaves(...flags: readonly object[]): NonNullable<Scenario["after"]> {
  return async ({ account, server: { server } }) => {
    const { body } = await account.send("GET", "/v1/gate");
    expect(body.flags).toEqual(flags.map((flag) => (flag as { flag_key: string }).flag_key));
    const stored = server.kernel.db.all<object, [string]>(
      "SELECT flag_key, enabled, description FROM flags WHERE project_ref = (SELECT p.ref FROM projects p JOIN accounts a ON a.ref = p.account_ref WHERE a.user_id = ?) ORDER BY ref DESC",
    );
    const expected = flags.map((flag) => {
      const { flag_key, enabled, description = null } = flag as Record<string, unknown>;
      return { flag_key, enabled: enabled === true ? 1 : 0, description };
    });
    expect(stored(account.userId)).toEqual(expected);
  };
}

const ON = { flag_key: "f", enabled: true };
const OFF = { flag_key: "f", enabled: false };
const DESCRIBED = { flag_key: "f", enabled: true, description: "The first" };

function withoutKey(method: string, path: string, body?: object): Scenario {
  return {
    name: "without a key",
    as: "nobody",
    request: [method, path, body],
    status: 401,
    code: "unauthorized",
  };
}

function withoutCredit(path: string): Scenario {
  return {
    name: "no credit to pay with",
    before: holding(ON),
    account: { balance: 0 },
    request: ["GET", path],
    status: 402,
    code: "insufficient_balance",
    holds: { balance: 0 },
  };
}

/** Bodies that the schema rejects, for a flag that stays unchanged. */
function rejected(name: string, body: unknown, fields: object): Scenario {
  return {
    name,
    before: holding(DESCRIBED),
    request: ["POST", "/v1/gate", body],
    status: 400,
    code: "validation_error",
    holds: { fields },
    after: leaves(DESCRIBED),
  };
}

/** Values of `enabled` that are not boolean. */
function notBoolean(value: unknown): Scenario {
  return {
    name: `enabled is ${JSON.stringify(value)}`,
    before: holding(DESCRIBED),
    request: ["POST", "/v1/gate", { flag_key: "f", enabled: value }],
    status: 400,
    code: "gate.rule_invalid",
    after: leaves(DESCRIBED),
  };
}

const BAD_KEYS = ["", "A", "-a", "_a", "a.b", "a b", "ü", "a\n", "a/b", "x".repeat(FLAG_KEY_LENGTH_MAX + 1)];
const LONGEST_KEY = "x".repeat(FLAG_KEY_LENGTH_MAX);
const LONGEST_DESCRIPTION = "🚩".repeat(DESCRIPTION_LENGTH_MAX);

function saved(name: string, body: object, more: Partial<Scenario>): Scenario {
  return {
    name,
    request: ["POST", "/v1/gate", body],
    status: 201,
    holds: { success: true, flag_key: (body as { flag_key: string }).flag_key },
    ...more,
  };
}

describe("POST /v1/gate", () => {
  endpoint(() => server, "POST /v1/gate", [
    saved("a new flag that is on", ON, {
      body: { success: true, flag_key: "f", version: 1 },
      after: leaves(ON),
    }),
    saved("a new flag that is off", OFF, { after: leaves(OFF) }),
    saved("with a description", DESCRIBED, { after: leaves(DESCRIBED) }),
    saved("costs nothing, with nothing to pay with", ON, { account: { balance: 0 }, after: leaves(ON) }),
    saved("an update keeps the description", OFF, {
      before: holding(DESCRIBED),
      after: leaves({ ...OFF, description: "The first" }),
    }),
    saved(
      "an update changes the description",
      { ...ON, description: "Another" },
      {
        before: holding(DESCRIBED),
        after: leaves({ ...ON, description: "Another" }),
      },
    ),
    saved(
      "null clears the description",
      { ...ON, description: null },
      {
        before: holding(DESCRIBED),
        after: leaves(ON),
      },
    ),
    saved("an update keeps the place in the list", OFF, {
      before: holding(ON, { flag_key: "later", enabled: true }),
      after: leaves({ flag_key: "later", enabled: true }, OFF),
    }),
    saved("unknown fields are ignored", { ...ON, rule: "everyone" }, { after: leaves(ON) }),
    saved(
      "the longest key and description",
      {
        flag_key: LONGEST_KEY,
        enabled: true,
        description: LONGEST_DESCRIPTION,
      },
      { after: leaves({ flag_key: LONGEST_KEY, enabled: true, description: LONGEST_DESCRIPTION }) },
    ),
    saved(
      "a key of digits",
      { flag_key: "0_-", enabled: true },
      {
        after: leaves({ flag_key: "0_-", enabled: true }),
      },
    ),
    saved(
      "a key that begins like the reserved one",
      { flag_key: "config2", enabled: true },
      {
        after: leaves({ flag_key: "config2", enabled: true }),
      },
    ),
    ...BAD_KEYS.map((key) =>
      rejected(
        `the key ${JSON.stringify(key).slice(0, 12)}, ${key.length} characters`,
        { ...ON, flag_key: key },
        {
          flag_key: [KEY_MESSAGE],
        },
      ),
    ),
    rejected("the key is a number", { ...ON, flag_key: 5 }, { flag_key: [KEY_MESSAGE] }),
    rejected("no key", { enabled: true }, { flag_key: [`is required: it ${KEY_MESSAGE}`] }),
    rejected("no enabled", { flag_key: "f" }, { enabled: ["is required: it must be true or false"] }),
    rejected(
      "an empty body",
      {},
      {
        flag_key: [`is required: it ${KEY_MESSAGE}`],
        enabled: ["is required: it must be true or false"],
      },
    ),
    rejected(
      "the reserved key",
      { ...ON, flag_key: RESERVED_KEY },
      {
        flag_key: ['must not be "config", which is the path of the configuration of all flags'],
      },
    ),
    rejected(
      "a description one character too long",
      { ...ON, description: `${LONGEST_DESCRIPTION}x` },
      {
        description: [DESCRIPTION_MESSAGE],
      },
    ),
    rejected(
      "a description that is a number",
      { ...ON, description: 5 },
      { description: [DESCRIPTION_MESSAGE] },
    ),
    ...["true", 1, 0, null, [true], {}].map(notBoolean),
    withoutKey("POST", "/v1/gate", ON),
    {
      name: "a large definition without credits",
      account: { balance: 0 },
      request: [
        "POST",
        "/v1/gate",
        { ...ON, type: "string", variants: { on: "x".repeat(8_192) }, default: { variant: "on" } },
      ],
      status: 402,
      code: "insufficient_balance",
      after: leaves(),
    },
    {
      name: "an Idempotency-Key used for another body",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.post("/v1/gate", ON, { headers: { "idempotency-key": "k" } }),
      request: ["POST", "/v1/gate", OFF],
      status: 409,
      code: "conflict",
      after: leaves(ON),
    },
  ]);
});

const TWO = [DESCRIBED, { flag_key: "a", enabled: false }];

describe("GET /v1/gate", () => {
  endpoint(() => server, "GET /v1/gate", [
    {
      name: "stale is no boolean",
      request: ["GET", "/v1/gate?stale=1"],
      status: 400,
      code: "validation_error",
      holds: { fields: { stale: expect.anything() } },
    },
    { name: "no flags", request: ["GET", "/v1/gate"], status: 200, body: { flags: [] } },
    {
      name: "the keys, newest first, free",
      before: holding(...TWO),
      account: { balance: 0 },
      request: ["GET", "/v1/gate"],
      status: 200,
      body: { flags: ["a", "f"] },
    },
    withoutKey("GET", "/v1/gate"),
  ]);
});

describe("GET /v1/gate/config", () => {
  endpoint(() => server, "GET /v1/gate/config", [
    { name: "no flags", request: ["GET", "/v1/gate/config"], status: 200, body: { flags: [] }, spent: 1 },
    {
      name: "all flags, newest first",
      before: holding(...TWO),
      request: ["GET", "/v1/gate/config"],
      status: 200,
      body: { flags: [{ flag_key: "a", enabled: false }, DESCRIBED] },
      spent: 1,
    },
    ...["full", "archived"].map(
      (name): Scenario => ({
        name: `${name} is no boolean`,
        request: ["GET", `/v1/gate/config?${name}=yes`],
        status: 400,
        code: "validation_error",
        holds: { fields: { [name]: ["must be true or false"] } },
      }),
    ),
    withoutCredit("/v1/gate/config"),
    withoutKey("GET", "/v1/gate/config"),
  ]);
});

const BAD_PATH_KEYS = [
  "A",
  "-a",
  "a.b",
  "a%20b",
  "%C3%BC",
  "a%0A",
  "a%2Fb",
  "x".repeat(FLAG_KEY_LENGTH_MAX + 1),
];

function badPathKeys(method: string): Scenario[] {
  return BAD_PATH_KEYS.map((key) => ({
    name: `the key ${key.slice(0, 12)}, ${key.length} characters`,
    request: [method, `/v1/gate/${key}`],
    status: 400,
    code: "validation_error",
    holds: { fields: { flagKey: [KEY_MESSAGE] } },
  }));
}

describe("GET /v1/gate/{flagKey}", () => {
  endpoint(() => server, "GET /v1/gate/{flagKey}", [
    {
      name: "on",
      before: holding(ON),
      request: ["GET", "/v1/gate/f"],
      status: 200,
      body: { enabled: true, flag_key: "f" },
      spent: 1,
    },
    {
      name: "off",
      before: holding(OFF),
      request: ["GET", "/v1/gate/f"],
      status: 200,
      body: { enabled: false, flag_key: "f" },
      spent: 1,
    },
    {
      name: "the longest key",
      before: holding({ flag_key: LONGEST_KEY, enabled: true }),
      request: ["GET", `/v1/gate/${LONGEST_KEY}`],
      status: 200,
      body: { enabled: true, flag_key: LONGEST_KEY },
      spent: 1,
    },
    {
      name: "no such flag",
      before: holding(ON),
      request: ["GET", "/v1/gate/g"],
      status: 404,
      code: "gate.feature_not_found",
      spent: 1,
    },
    withoutCredit("/v1/gate/f"),
    ...badPathKeys("GET"),
    withoutKey("GET", "/v1/gate/f"),
  ]);
});

describe("DELETE /v1/gate/{flagKey}", () => {
  endpoint(() => server, "DELETE /v1/gate/{flagKey}", [
    {
      name: "a flag, and no other",
      before: holding(ON, { flag_key: "g", enabled: true }),
      account: { balance: 0 },
      request: ["DELETE", "/v1/gate/f"],
      status: 200,
      body: { success: true },
      after: leaves({ flag_key: "g", enabled: true }),
    },
    {
      name: "no such flag",
      before: holding(ON),
      request: ["DELETE", "/v1/gate/g"],
      status: 404,
      code: "flag_not_found",
      after: leaves(ON),
    },
    {
      name: "the reserved key is no flag",
      request: ["DELETE", `/v1/gate/${RESERVED_KEY}`],
      status: 404,
      code: "flag_not_found",
    },
    ...badPathKeys("DELETE"),
    withoutKey("DELETE", "/v1/gate/f"),
    {
      name: "an Idempotency-Key used for another flag",
      headers: { "idempotency-key": "k" },
      before: async (world) => {
        await holding(ON, { flag_key: "g", enabled: true })(world);
        await world.account.delete("/v1/gate/g", { headers: { "idempotency-key": "k" } });
      },
      request: ["DELETE", "/v1/gate/f"],
      status: 409,
      code: "conflict",
      after: leaves(ON),
    },
  ]);
});

test("flags belong to the project: keys of other projects see only their own", async () => {
  const account = await server.account({ balance: 100 });
  const project = await account.post("/v1/projects", { name: "Other" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const created = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
  const other = server.client(String(created.body.secret));
  await account.post("/v1/gate", ON);
  expect((await other.get("/v1/gate/f")).status).toBe(404);
  await other.post("/v1/gate", OFF);
  expect((await other.get("/v1/gate/f")).body.enabled).toBe(false);
  expect((await account.get("/v1/gate/f")).body.enabled).toBe(true);
  await other.delete("/v1/gate/f");
  expect((await account.get("/v1/gate")).body).toEqual({ flags: ["f"] });
  expect((await other.get("/v1/gate")).body).toEqual({ flags: [] });
});
