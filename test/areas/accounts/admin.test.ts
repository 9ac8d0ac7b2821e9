import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PAGE_LIMIT_MAX } from "../../../src/kernel/http/requests/pagination.ts";
import { DEFAULT_TIERS, TIER_NAMES } from "../../../src/kernel/limits/tiers.ts";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import type { Answer } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, USER_ID, type World } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const STRANGER = "/v1/admin/accounts/usr_00000000000000000000";
const ITSELF = `/v1/admin/accounts/${USER_ID}`;
const TIER_MESSAGE = "must be one of free, starter, pro, scale, unlimited";
const BALANCE_MESSAGE = "must be an integer from 0 to 9007199254740991";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

interface View {
  readonly user_id: string;
  readonly email: string;
  readonly tier: string;
  readonly balance: number;
  readonly suspended: boolean;
  readonly created_at: string;
}

describe("POST /v1/admin/accounts", () => {
  const path = "/v1/admin/accounts";
  const invalid = (name: string, body: object, fields: object) =>
    ({
      name,
      as: "operator",
      request: ["POST", path, body],
      status: 400,
      code: "validation_error",
      holds: { fields },
    }) as const;
  endpoint(() => server, "POST /v1/admin/accounts", [
    ...TIER_NAMES.map(
      (tier) =>
        ({
          name: `tier ${tier}: starts with the tier's monthly credits`,
          as: "operator",
          request: ["POST", path, { email: `${tier}@example.com`, tier }],
          status: 201,
          holds: { email: `${tier}@example.com`, tier, balance: DEFAULT_TIERS[tier].monthlyCredits },
          after: async (_: World, { body }: Answer) => {
            expect(Object.keys(body).sort()).toEqual(["api_key", "balance", "email", "tier", "user_id"]);
            expect(body.user_id).toMatch(/^usr_[0-9A-Za-z]{20}$/);
            expect(isBearerKey(String(body.api_key))).toBe(true);
            const own = await server.client(String(body.api_key)).get("/v1/meter/balance");
            expect(own.body).toEqual({ balance: body.balance, user_id: body.user_id });
          },
        }) as const,
    ),
    {
      name: "a balance of 0",
      as: "operator",
      request: ["POST", path, { email: "zero@example.com", tier: "pro", balance: 0 }],
      status: 201,
      holds: { balance: 0 },
    },
    {
      name: "the largest balance",
      as: "operator",
      request: ["POST", path, { email: "rich@example.com", tier: "pro", balance: MOST }],
      status: 201,
      holds: { balance: MOST },
    },
    invalid("no body", {}, { email: ["is required: it must be an e-mail address"] }),
    invalid("no tier", { email: "a@example.com" }, { tier: [`is required: it ${TIER_MESSAGE}`] }),
    invalid("an unknown tier", { email: "a@example.com", tier: "gold" }, { tier: [TIER_MESSAGE] }),
    invalid("no address", { email: "a", tier: "free" }, { email: ["must be an e-mail address"] }),
    ...[-1, 1.5, "5", MOST + 1, null].map((balance) =>
      invalid(
        `the balance ${JSON.stringify(balance)}`,
        { email: "a@example.com", tier: "free", balance },
        { balance: [BALANCE_MESSAGE] },
      ),
    ),
    { name: "without a key", as: "nobody", request: ["POST", path, {}], status: 401, code: "unauthorized" },
    {
      name: "with the key of another account",
      request: ["POST", path, { email: "b@example.com", tier: "free" }],
      status: 403,
      code: "forbidden",
      lacks: ["api_key"],
    },
    {
      name: "an e-mail address that another account has, in another case",
      as: "operator",
      before: () => server.account({ email: "Known@Example.com" }),
      request: ["POST", path, { email: "kNOWN@eXAMPLE.COM", tier: "free" }],
      status: 409,
      code: "conflict",
    },
    {
      name: "the operator's e-mail address",
      as: "operator",
      request: ["POST", path, { email: "OPERATOR@localhost", tier: "free" }],
      status: 409,
      code: "conflict",
    },
  ]);
});

describe("GET /v1/admin/accounts", () => {
  const path = "/v1/admin/accounts";
  const bad = (query: string, field: string) =>
    ({
      name: `${query}`,
      as: "operator",
      request: ["GET", `${path}?${query}`],
      status: 400,
      code: "validation_error",
      after: (_: unknown, { body }: { body: Record<string, unknown> }) =>
        expect(Object.keys(body.fields as object)).toEqual([field]),
    }) as const;
  endpoint(() => server, "GET /v1/admin/accounts", [
    {
      name: "the newest account first, without its key",
      as: "operator",
      request: ["GET", path],
      status: 200,
      lacks: ["api_key", "sm_"],
      after: ({ account }, { body }) => {
        expect((body.accounts as View[])[0]).toEqual({
          user_id: account.userId,
          email: account.email,
          tier: "scale",
          balance: 100,
          suspended: false,
          created_at: new Date(TEST_START_MS).toISOString(),
        });
      },
    },
    bad("limit=0", "limit"),
    bad(`limit=${PAGE_LIMIT_MAX + 1}`, "limit"),
    bad("limit=-1", "limit"),
    bad("limit=1.5", "limit"),
    bad("limit=ten", "limit"),
    bad("limit=", "limit"),
    bad("cursor=", "cursor"),
    bad("cursor=abc", "cursor"),
    bad(`cursor=${"x".repeat(257)}`, "cursor"),
    bad(`cursor=${btoa('["a"]')}`, "cursor"),
    bad(`cursor=${btoa("[1,2]")}`, "cursor"),
    bad(`cursor=${btoa("[1.5]")}`, "cursor"),
    { name: "without a key", as: "nobody", request: ["GET", path], status: 401, code: "unauthorized" },
    { name: "with the key of another account", request: ["GET", path], status: 403, code: "forbidden" },
  ]);

  test("pages contain every account once, newest first, even if one is created between them", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      for (let index = 0; index < 11; index += 1)
        await separateServer.account({ email: `page-${index}@example.com` });
      const seen: string[] = [];
      let cursor: unknown;
      const sizes: number[] = [];
      do {
        const query = cursor === undefined ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
        const { body } = await separateServer.operator.get(`/v1/admin/accounts?limit=5${query}`);
        const accounts = body.accounts as View[];
        sizes.push(accounts.length);
        seen.push(...accounts.map(({ email }) => email));
        cursor = body.cursor;
        await separateServer.account();
      } while (cursor !== undefined);
      expect(sizes).toEqual([5, 5, 2]);
      const expected = Array.from({ length: 11 }, (_, index) => `page-${10 - index}@example.com`);
      expect(seen).toEqual([...expected, "operator@localhost"]);
      const whole = await separateServer.operator.get(`/v1/admin/accounts?limit=${PAGE_LIMIT_MAX}`);
      expect(Object.keys(whole.body)).toEqual(["accounts"]);
      expect((await separateServer.operator.get("/v1/admin/accounts?limit=1")).body.accounts).toHaveLength(1);
    } finally {
      await separateServer.stop();
    }
  });

  test("the default limit is 50", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      await Promise.all(Array.from({ length: 51 }, () => separateServer.account()));
      const { body } = await separateServer.operator.get("/v1/admin/accounts");
      expect(body.accounts).toHaveLength(50);
      expect(typeof body.cursor).toBe("string");
    } finally {
      await separateServer.stop();
    }
  });
});

describe("PATCH /v1/admin/accounts/{user_id}", () => {
  const invalid = (name: string, body: unknown, fields: object) =>
    ({
      name,
      as: "operator",
      request: ["PATCH", ITSELF, body],
      status: 400,
      code: "validation_error",
      holds: { fields },
    }) as const;
  endpoint(() => server, "PATCH /v1/admin/accounts/{user_id}", [
    {
      name: "an empty object: the account is unchanged",
      as: "operator",
      request: ["PATCH", ITSELF, {}],
      status: 200,
      holds: { user_id: USER_ID, tier: "scale", balance: 100, suspended: false },
      lacks: ["api_key"],
    },
    {
      name: "no body: the account is unchanged",
      as: "operator",
      request: ["PATCH", ITSELF],
      status: 200,
      holds: { tier: "scale", balance: 100, suspended: false },
    },
    {
      name: "only the tier: the balance does not change",
      as: "operator",
      request: ["PATCH", ITSELF, { tier: "free" }],
      status: 200,
      holds: { tier: "free", balance: 100, suspended: false },
    },
    {
      name: "only the e-mail address",
      as: "operator",
      request: ["PATCH", ITSELF, { email: "Moved@Example.com" }],
      status: 200,
      holds: { email: "Moved@Example.com", tier: "scale", balance: 100 },
    },
    {
      name: "an e-mail address that another account has, in another case",
      as: "operator",
      before: async ({ server: of }) => {
        await of.account({ email: "taken@example.com" });
      },
      request: ["PATCH", ITSELF, { email: "TAKEN@example.com", tier: "free" }],
      status: 409,
      code: "conflict",
    },
    invalid("an invalid e-mail address", { email: "nobody" }, { email: ["must be an e-mail address"] }),
    {
      name: "the balance: the ledger gets an entry of kind reset",
      as: "operator",
      request: ["PATCH", ITSELF, { balance: 70 }],
      status: 200,
      holds: { balance: 70 },
      spent: 30,
      after: async ({ account }, answer) => {
        const { body } = await account.get("/v1/meter/history");
        expect((body.entries as object[])[0]).toMatchObject({
          kind: "reset",
          amount: -30,
          balance_after: 70,
          request_id: answer.headers.get("x-request-id"),
        });
      },
    },
    {
      name: "a balance of 0",
      as: "operator",
      request: ["PATCH", ITSELF, { balance: 0 }],
      status: 200,
      holds: { balance: 0 },
      spent: 100,
    },
    {
      name: "all fields",
      as: "operator",
      request: ["PATCH", ITSELF, { tier: "pro", balance: MOST, suspended: true }],
      status: 200,
      holds: { tier: "pro", balance: MOST, suspended: true },
      spent: 100 - MOST,
    },
    invalid("an unknown tier", { tier: "gold" }, { tier: [TIER_MESSAGE] }),
    invalid("a null tier", { tier: null }, { tier: [TIER_MESSAGE] }),
    invalid("a negative balance", { balance: -1 }, { balance: [BALANCE_MESSAGE] }),
    invalid("a fraction", { balance: 0.5 }, { balance: [BALANCE_MESSAGE] }),
    invalid("suspended as a text", { suspended: "true" }, { suspended: ["must be true or false"] }),
    {
      name: "without a key",
      as: "nobody",
      request: ["PATCH", ITSELF, {}],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "with the account's own key",
      request: ["PATCH", ITSELF, { balance: 1_000_000 }],
      status: 403,
      code: "forbidden",
    },
    {
      name: "an unknown user id",
      as: "operator",
      request: ["PATCH", STRANGER, { tier: "free" }],
      status: 404,
      code: "not_found",
    },
    {
      name: "an Idempotency-Key used for another request",
      as: "operator",
      headers: { "idempotency-key": "patched" },
      before: ({ server: { operator } }) =>
        operator.patch(STRANGER, {}, { headers: { "idempotency-key": "patched" } }),
      request: ["PATCH", ITSELF, {}],
      status: 409,
      code: "conflict",
    },
  ]);

  test("suspension: 403 for every key of the account from the next request until it is lifted", async () => {
    const account = await server.account();
    const path = `/v1/admin/accounts/${account.userId}`;
    const newer = server.client(String((await account.post("/v1/keys/rotate")).body.key));
    await server.operator.patch(path, { suspended: true });
    for (const client of [account, newer]) {
      const { error } = expectError(await client.get("/v1/meter/balance"), "forbidden");
      expect(error.message).toBe("This account is suspended.");
      expectError(await client.post("/v1/meter/m/refill", { amount: 1 }), "forbidden");
      expect((await client.get("/v1/ping")).status).toBe(200);
    }
    await server.restart();
    expectError(await server.client(account.key).get("/v1/meter/balance"), "forbidden");
    await server.operator.patch(path, { suspended: false });
    expect((await server.client(account.key).get("/v1/meter/balance")).status).toBe(200);
  });

  test("a replaced e-mail address is available again, and an address can change its case", async () => {
    const { userId } = await server.account({ email: "first@example.com" });
    const change = (email: string) => server.operator.patch(`/v1/admin/accounts/${userId}`, { email });
    expect((await change("FIRST@example.com")).body["email"]).toBe("FIRST@example.com");
    expect((await change("second@example.com")).status).toBe(200);
    const { email } = await server.account({ email: "first@example.com" });
    expectError(await change(email), "conflict");
    expectError(
      await server.operator.post("/v1/admin/accounts", { email: "Second@example.com", tier: "free" }),
      "conflict",
    );
  });

  test("an update survives a restart", async () => {
    const account = await server.account({ tier: "free", balance: 5 });
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "pro", balance: 6 });
    await server.restart();
    const { body } = await server.operator.patch(`/v1/admin/accounts/${account.userId}`, {});
    expect(body).toMatchObject({ tier: "pro", balance: 6, suspended: false });
  });
});

test("an account of tier unlimited is an operator until its tier changes", async () => {
  const second = await server.account({ tier: "unlimited" });
  expect((await second.get("/v1/admin/accounts")).status).toBe(200);
  await server.operator.patch(`/v1/admin/accounts/${second.userId}`, { tier: "scale" });
  expectError(await second.get("/v1/admin/accounts"), "forbidden");
});

test("the operator cannot change the tier of its own account or suspend it", async () => {
  const { body } = await server.operator.get("/v1/admin/accounts?limit=100");
  const all = body.accounts as { user_id: string; email: string }[];
  const own = all.find(({ email }) => email === "operator@localhost")?.user_id;
  for (const change of [{ suspended: true }, { tier: "free" }, { tier: "scale", balance: 5 }]) {
    expectError(await server.operator.patch(`/v1/admin/accounts/${own}`, change), "invalid_request");
  }
  const harmless = { tier: "unlimited", suspended: false, balance: 7 };
  expect((await server.operator.patch(`/v1/admin/accounts/${own}`, harmless)).body).toMatchObject(harmless);
});
