import { afterAll, beforeAll, describe, expect } from "bun:test";
import { GRACE_HOURS_DEFAULT, GRACE_HOURS_MAX, GRACE_HOURS_MIN } from "../../../src/areas/keys/domain.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { naming } from "../projects/support.ts";
import { makeKey, UNBOUND } from "./support.ts";

const NOW = "2026-03-10T12:00:00.000Z";
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ABSENT = "019cd79e-4600-72c4-a4c7-1699cbd1c0e9";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const hoursFromStart = (hours: number): string => new Date(TEST_START_MS + hours * 3_600_000).toISOString();

async function keyCount({ account }: World): Promise<number> {
  const answer = await server.server.kernel.db.one<{ count: number }, [string]>(
    "SELECT count(*) AS count FROM keys WHERE account_ref = (SELECT ref FROM accounts WHERE user_id = ?)",
  )(account.userId);
  return answer?.count ?? 0;
}

/** Expects this number of keys of the account. */
function leaves(count: number): NonNullable<Scenario["after"]> {
  return async (world) => expect(await keyCount(world)).toBe(count);
}

const CURSOR_MESSAGE = "must be the next_cursor of the previous page, a date-time";

describe("GET /v1/keys", () => {
  const badQuery = (query: string, fields: object): Scenario => ({
    name: `the query ${query}`,
    request: ["GET", `/v1/keys?${query}`],
    status: 400,
    code: "validation_error",
    holds: { fields },
  });
  endpoint(() => server, "GET /v1/keys", [
    {
      name: "no keys",
      request: ["GET", "/v1/keys"],
      status: 200,
      body: { keys: [], has_more: false, next_cursor: null },
      spent: 1,
    },
    {
      name: "twenty by default, newest first, masked, with the cursor of the next page",
      before: async ({ account }) => {
        for (let at = 0; at < 21; at += 1) await makeKey(account, { name: `k${at}` });
      },
      request: ["GET", "/v1/keys"],
      status: 200,
      spent: 1,
      after: (_, { body, text }) => {
        const keys = body.keys as Record<string, unknown>[];
        expect(keys.map(({ name }) => name)).toEqual(Array.from({ length: 20 }, (_, at) => `k${20 - at}`));
        expect(body).toMatchObject({ has_more: true, next_cursor: keys.at(-1)?.["created_at"] });
        expect(keys[0]).toEqual({
          id: expect.stringMatching(UUID_V7),
          masked_secret: "acme_...",
          last4: expect.stringMatching(/^[0-9a-f]{4}$/),
          prefix: "acme",
          name: "k20",
          scopes: ["orders:read"],
          project_id: null,
          created_at: expect.any(String),
          expires_at: null,
          revoked_at: null,
          last_used_at: null,
          ...UNBOUND,
        });
        expect(text).not.toMatch(/acme_[0-9A-Za-z]/);
      },
    },
    ...["0", "101", "1.5", "x"].map((limit) =>
      badQuery(`limit=${limit}`, { limit: ["must be an integer from 1 to 100"] }),
    ),
    ...["x", "5", "2026-02-30T00:00:00Z", "2026-03-10"].map((cursor) =>
      badQuery(`cursor=${cursor}`, { cursor: [CURSOR_MESSAGE] }),
    ),
    { name: "without a key", as: "nobody", request: ["GET", "/v1/keys"], status: 401, code: "unauthorized" },
    {
      name: "an empty balance",
      account: { balance: 0 },
      request: ["GET", "/v1/keys"],
      status: 402,
      code: "insufficient_balance",
    },
  ]);
});

const make = async ({ account }: World): Promise<string> => (await makeKey(account)).id;

/** Requests that every endpoint of a single key rejects. */
function common(method: string, last = "", body?: object): Scenario[] {
  const missing = [ABSENT, "none", "rotate2", ABSENT.slice(1), "%20", "x".repeat(64)].map(
    (id): Scenario => ({
      name: `the id ${id.slice(0, 12)}, ${id.length} characters`,
      request: [method, `/v1/keys/${id}${last}`, body],
      status: 404,
      code: "not_found",
      spent: 1,
    }),
  );
  return [
    ...missing,
    naming({
      name: "another account's key",
      make: async ({ server }) => (await makeKey(server.operator)).id,
      ask: (id) => [method, `/v1/keys/${id}${last}`, body],
      status: 404,
      code: "not_found",
      spent: 1,
    }),
    {
      name: "an id that is too long",
      request: [method, `/v1/keys/${"x".repeat(65)}${last}`, body],
      status: 400,
      code: "validation_error",
      holds: { fields: { id: ["must be the id of a key, a UUID"] } },
    },
    naming({
      name: "without a key",
      as: "nobody",
      make,
      ask: (id) => [method, `/v1/keys/${id}${last}`, body],
      status: 401,
      code: "unauthorized",
    }),
    naming({
      name: "an empty balance",
      account: { balance: 1 },
      make,
      ask: (id) => [method, `/v1/keys/${id}${last}`, body],
      status: 402,
      code: "insufficient_balance",
    }),
  ];
}

describe("GET /v1/keys/{id}", () => {
  endpoint(() => server, "GET /v1/keys/{id}", [
    naming({
      name: "a key",
      make,
      ask: (id) => ["GET", `/v1/keys/${id}`],
      status: 200,
      holds: { name: "k" },
      spent: 1,
    }),
    naming({
      name: "its id in upper case",
      make,
      ask: (id) => ["GET", `/v1/keys/${id.toUpperCase()}`],
      status: 200,
      holds: { name: "k" },
      spent: 1,
    }),
    ...common("GET"),
  ]);
});

/** A rotation with this grace period, and the expiry of the old key. */
function rotated(body: object | undefined, graceHours: number, end: string, more: object = {}): Scenario {
  return naming({
    name: `${JSON.stringify(body)} of a key with ${JSON.stringify(more)}`,
    make: async ({ account }) => (await makeKey(account, more)).id,
    ask: (id) => ["POST", `/v1/keys/${id}/rotate`, body],
    status: 200,
    holds: { grace_hours: graceHours, old_expires_at: end },
    spent: 1,
  });
}

function badGrace(grace: unknown): Scenario {
  return naming({
    name: `the grace ${JSON.stringify(grace)}`,
    make,
    ask: (id) => ["POST", `/v1/keys/${id}/rotate`, { grace_hours: grace }],
    status: 400,
    code: "validation_error",
    holds: { fields: { grace_hours: ['must be a number from 1 to 720 (hours), or a text such as "1h"'] } },
    after: leaves(1),
  });
}

describe("POST /v1/keys/{id}/rotate", () => {
  endpoint(() => server, "POST /v1/keys/{id}/rotate", [
    rotated({}, GRACE_HOURS_DEFAULT, hoursFromStart(24)),
    rotated(undefined, GRACE_HOURS_DEFAULT, hoursFromStart(24)),
    rotated({ grace_hours: GRACE_HOURS_MIN }, 1, hoursFromStart(1)),
    rotated({ grace_hours: 1.5 }, 1.5, hoursFromStart(1.5)),
    rotated({ grace_hours: GRACE_HOURS_MAX }, 720, hoursFromStart(720)),
    rotated({ grace_hours: 2 }, 2, hoursFromStart(1), { expires_at: hoursFromStart(1) }),
    rotated({ grace_hours: 2 }, 2, hoursFromStart(2), { expires_at: hoursFromStart(3) }),
    ...[GRACE_HOURS_MIN - 0.001, GRACE_HOURS_MAX + 0.001, 0, -1, "24", null, true].map(badGrace),
    naming({
      name: "a revoked key",
      make: async (world) => {
        const id = await make(world);
        await world.account.delete(`/v1/keys/${id}`);
        return id;
      },
      ask: (id) => ["POST", `/v1/keys/${id}/rotate`, {}],
      status: 409,
      code: "conflict",
      spent: 1,
      after: leaves(1),
    }),
    naming({
      name: "a key that was already rotated",
      make: async (world) => {
        const id = await make(world);
        await world.account.post(`/v1/keys/${id}/rotate`, {});
        return id;
      },
      ask: (id) => ["POST", `/v1/keys/${id}/rotate`, {}],
      status: 409,
      code: "conflict",
      spent: 1,
      after: leaves(2),
    }),
    ...common("POST", "/rotate", {}),
  ]);
});

describe("DELETE /v1/keys/{id}", () => {
  endpoint(() => server, "DELETE /v1/keys/{id}", [
    naming({
      name: "a key",
      make,
      ask: (id) => ["DELETE", `/v1/keys/${id}`],
      status: 200,
      holds: { revoked_at: NOW, status: "revoked" },
      // And one credit for reading it again.
      spent: 2,
      after: async ({ account }, { body }) => {
        expect(Object.keys(body).sort()).toEqual(["key_id", "revoked_at", "status"]);
        expect((await account.get(`/v1/keys/${body.key_id}`)).body.revoked_at).toBe(NOW);
      },
    }),
    naming({
      name: "an Idempotency-Key used for another key",
      headers: { "idempotency-key": "k" },
      make: async (world) => {
        const [first, second] = [await make(world), await make(world)];
        await world.account.delete(`/v1/keys/${first}`, { headers: { "idempotency-key": "k" } });
        return second;
      },
      ask: (id) => ["DELETE", `/v1/keys/${id}`],
      status: 409,
      code: "conflict",
    }),
    ...common("DELETE"),
  ]);
});

describe("PATCH /v1/keys/{id}", () => {
  const after = (change: (world: World, id: string) => Promise<unknown>) => async (world: World) => {
    const id = await make(world);
    await change(world, id);
    return id;
  };
  const ended: [string, (world: World, id: string) => Promise<unknown>][] = [
    ["a revoked key", ({ account }, id) => account.delete(`/v1/keys/${id}`)],
    ["a key that was rotated", ({ account }, id) => account.post(`/v1/keys/${id}/rotate`, {})],
  ];
  endpoint(() => server, "PATCH /v1/keys/{id}", [
    naming({
      name: "a key",
      make,
      ask: (id) => ["PATCH", `/v1/keys/${id}`, { name: "new", owner_id: "acme" }],
      status: 200,
      holds: { name: "new", owner_id: "acme", scopes: ["orders:read"] },
      spent: 1,
    }),
    naming({
      name: "an empty object",
      make,
      ask: (id) => ["PATCH", `/v1/keys/${id}`, {}],
      status: 200,
      spent: 1,
    }),
    ...[
      ["name", ""],
      ["name", null],
      ["scopes", []],
      ["scopes", null],
      ["expires_at", NOW],
      ["metadata", { k: 5 }],
      ["owner_id", "a b"],
    ].map(([field, value]) =>
      naming({
        name: `the ${field} ${JSON.stringify(value)}`,
        make,
        ask: (id) => ["PATCH", `/v1/keys/${id}`, { [String(field)]: value }],
        status: 400,
        code: "validation_error",
        after: (_, { body }) => expect(Object.keys(body.fields as object)).toEqual([String(field)]),
      }),
    ),
    ...ended.map(([name, change]) =>
      naming({
        name,
        make: after(change),
        ask: (id) => ["PATCH", `/v1/keys/${id}`, { enabled: false }],
        status: 409,
        code: "conflict",
        spent: 1,
      }),
    ),
    ...common("PATCH", "", {}),
  ]);
});

describe("GET /v1/keys/{id}/usage", () => {
  const ask = (query: string): Scenario["request"] => ["GET", `/v1/keys/{id}/usage${query}`];
  const asked = (name: string, query: string, rest: Pick<Scenario, "status" | "code" | "holds" | "spent">) =>
    naming({ name, make, ask: (id) => ["GET", ask(query)[1].replace("{id}", id)], ...rest });
  const bad = (query: string, field: string, message: string) =>
    asked(`the query ${query}`, `?${query}`, {
      status: 400,
      code: "validation_error",
      holds: { fields: { [field]: [message] } },
    });
  const hours = (count: number) => `to=${NOW}&from=${hoursFromStart(-count)}`;
  endpoint(() => server, "GET /v1/keys/{id}/usage", [
    asked("of a new key", "", {
      status: 200,
      spent: 1,
      holds: { from: hoursFromStart(-24), to: NOW, granularity: "hour", data: [] },
    }),
    asked("a thousand hours", `?${hours(1_000)}`, { status: 200, spent: 1 }),
    asked("a thousand days", `?granularity=day&${hours(24_000 - 12)}`, { status: 200, spent: 1 }),
    bad(hours(1_001), "from", "must be at most 1000 hours before to"),
    bad(`granularity=day&${hours(24_000)}`, "from", "must be at most 1000 days before to"),
    bad(hours(0), "from", "must be before to"),
    bad("from=x", "from", "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z"),
    bad("to=5", "to", "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z"),
    bad("granularity=week", "granularity", "must be hour or day"),
    ...common("GET", "/usage"),
  ]);
});

describe("POST /v1/keys/revoke", () => {
  const bad = (name: string, body: object): Scenario => ({
    name,
    request: ["POST", "/v1/keys/revoke", body],
    status: 400,
    code: "validation_error",
    after: (_, { body: { fields } }) => expect(Object.keys(fields as object)).toEqual(["owner_id"]),
  });
  const owned: Scenario["before"] = ({ account }) => makeKey(account, { owner_id: "acme" });
  const request: Scenario["request"] = ["POST", "/v1/keys/revoke", { owner_id: "acme" }];
  endpoint(() => server, "POST /v1/keys/revoke", [
    { name: "a key", before: owned, request, status: 200, body: { revoked: 1, more: false }, spent: 1 },
    { name: "no key", request, status: 200, body: { revoked: 0, more: false }, spent: 1 },
    bad("no owner", {}),
    bad("null", { owner_id: null }),
    bad("an owner that is too long", { owner_id: "x".repeat(256) }),
    { name: "without a key", as: "nobody", request, status: 401, code: "unauthorized" },
    {
      name: "an empty balance",
      account: { balance: 1 },
      before: owned,
      request,
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key used for another owner",
      headers: { "idempotency-key": "k" },
      before: ({ account }) =>
        account.post("/v1/keys/revoke", { owner_id: "other" }, { headers: { "idempotency-key": "k" } }),
      request,
      status: 409,
      code: "conflict",
    },
  ]);
});
