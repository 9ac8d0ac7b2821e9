import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endpoint, type Scenario, USER_ID, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const AMOUNT_MESSAGE = "must be an integer from 1 to 9007199254740991";
const RESET_MESSAGE = "must be an integer from 0 to 9007199254740991";
const ID_MESSAGE = "must be 1 to 64 letters, digits, dashes or underscores";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Gives the meter `m` a balance. */
function holding(balance: number): (world: World) => Promise<unknown> {
  return ({ account }) => account.post("/v1/meter/m/reset", { balance });
}

/** Expects the meter `m` to have `balance`. */
function leaves(balance: number): NonNullable<Scenario["after"]> {
  return async ({ account }) => {
    expect((await account.get("/v1/meter/m/balance")).body.balance).toBe(balance);
  };
}

const BAD_IDS = ["a.b", "a%20b", "a%2Fb", "%C3%BC", "a%00", "m%0A", "%25", "a:b", "x".repeat(65), "%zz", "*"];

/** Invalid meter ids, on one of the paths. */
function badIds(method: string, last: string, body?: object): Scenario[] {
  return BAD_IDS.map((id) => ({
    name: `the meter id ${id.slice(0, 12)}${id.length > 12 ? `… (${id.length} characters)` : ""}`,
    request: [method, `/v1/meter/${id}/${last}`, body],
    status: 400,
    code: "validation_error",
    holds: { fields: { meterId: [ID_MESSAGE] } },
  }));
}

/** Values of wrong types in the body of a change. */
function badValues(last: string, field: string, message: string): Scenario[] {
  const invalid = (name: string, body: unknown, text = message): Scenario => ({
    name,
    before: holding(50),
    request: ["POST", `/v1/meter/m/${last}`, body],
    status: 400,
    code: "validation_error",
    holds: { fields: { [field]: [text] } },
    after: leaves(50),
  });
  return [
    invalid("no body", undefined, `is required: it ${message}`),
    invalid("an empty body", {}, `is required: it ${message}`),
    ...["5", 0.5, -0.5, null, true, [5], {}, MOST + 1, 1e300].map((value) =>
      invalid(`the value ${JSON.stringify(value)}`, { [field]: value }),
    ),
  ];
}

function notPositive(last: string): Scenario[] {
  return [0, -1, -MOST, -1e300].map((amount) => ({
    name: `the amount ${amount} is not positive`,
    before: holding(50),
    request: ["POST", `/v1/meter/m/${last}`, { amount }],
    status: 400,
    code: "invalid_request",
    after: leaves(50),
  }));
}

/** Other requests that every change rejects. */
function common(last: string, body: object, other: object): Scenario[] {
  const request = ["POST", `/v1/meter/m/${last}`, body] as const;
  return [
    { name: "without a key", as: "nobody", request, status: 401, code: "unauthorized" },
    {
      name: "no credits: the error has the account balance",
      account: { balance: 0 },
      request,
      status: 402,
      code: "insufficient_balance",
      holds: { balance: 0, user_id: USER_ID },
      lacks: ["meter_id"],
      after: leaves(0),
    },
    {
      name: "an Idempotency-Key used for another body",
      headers: { "idempotency-key": "k" },
      before: async ({ account }) => {
        await account.post("/v1/meter/m/reset", { balance: 50 });
        await account.post(`/v1/meter/m/${last}`, other, { headers: { "idempotency-key": "k" } });
      },
      request,
      status: 409,
      code: "conflict",
    },
  ];
}

describe("GET /v1/meter/{meterId}/balance", () => {
  const path = "/v1/meter/m/balance";
  endpoint(() => server, "GET /v1/meter/{meterId}/balance", [
    {
      name: "the balance",
      before: holding(50),
      request: ["GET", path],
      status: 200,
      body: { balance: 50, meter_id: "m", available: 50, held: 0 },
    },
    {
      name: "of a meter that does not exist: 0, and none is made",
      request: ["GET", "/v1/meter/never-heard-of/balance"],
      status: 200,
      body: { balance: 0, meter_id: "never-heard-of", available: 0, held: 0 },
      after: ({ server: { server: running } }) => {
        const found = running.kernel.db.one("SELECT 1 FROM meters WHERE meter_id = 'never-heard-of'")();
        expect(found).toBeNull();
      },
    },
    ...["a", "A-Z_09", "-", "_", "0", "x".repeat(64), "__proto__", "constructor"].map(
      (id): Scenario => ({
        name: `the meter id ${id.slice(0, 12)}`,
        request: ["GET", `/v1/meter/${id}/balance`],
        status: 200,
        body: { balance: 0, meter_id: id, available: 0, held: 0 },
      }),
    ),
    ...badIds("GET", "balance"),
    { name: "without a key", as: "nobody", request: ["GET", path], status: 401, code: "unauthorized" },
  ]);
});

describe("POST /v1/meter/{meterId}/deduct", () => {
  const path = "/v1/meter/m/deduct";
  const insufficient = (name: string, balance: number, amount: number): Scenario => ({
    name,
    before: holding(balance),
    request: ["POST", path, { amount }],
    status: 402,
    code: "insufficient_balance",
    holds: { balance, meter_id: "m" },
    lacks: ["user_id"],
    after: leaves(balance),
  });
  endpoint(() => server, "POST /v1/meter/{meterId}/deduct", [
    {
      name: "takes the amount, for 1 credit",
      before: holding(50),
      request: ["POST", path, { amount: 20 }],
      status: 200,
      body: { balance: 30, meter_id: "m" },
      spent: 1,
      after: leaves(30),
    },
    {
      name: "takes the last unit",
      before: holding(50),
      request: ["POST", path, { amount: 50 }],
      status: 200,
      body: { balance: 0, meter_id: "m" },
      spent: 1,
    },
    {
      name: "takes the largest amount",
      before: holding(MOST),
      request: ["POST", path, { amount: MOST }],
      status: 200,
      body: { balance: 0, meter_id: "m" },
      spent: 1,
    },
    insufficient("one more than there is", 50, 51),
    insufficient("the largest amount", 50, MOST),
    insufficient("anything from nothing", 0, 1),
    {
      name: "a meter that does not exist, and none is made",
      request: ["POST", "/v1/meter/not-there/deduct", { amount: 1 }],
      status: 402,
      code: "insufficient_balance",
      holds: { balance: 0, meter_id: "not-there" },
      after: ({ server: { server: running } }) => {
        expect(running.kernel.db.one("SELECT 1 FROM meters WHERE meter_id = 'not-there'")()).toBeNull();
      },
    },
    ...badIds("POST", "deduct", { amount: 1 }),
    ...badValues("deduct", "amount", AMOUNT_MESSAGE),
    ...notPositive("deduct"),
    ...common("deduct", { amount: 5 }, { amount: 4 }),
  ]);
});

describe("POST /v1/meter/{meterId}/refill", () => {
  const path = "/v1/meter/m/refill";
  endpoint(() => server, "POST /v1/meter/{meterId}/refill", [
    {
      name: "makes the meter, for 1 credit",
      request: ["POST", path, { amount: 20 }],
      status: 200,
      body: { balance: 20, meter_id: "m" },
      spent: 1,
      after: leaves(20),
    },
    {
      name: "adds to it",
      before: holding(50),
      request: ["POST", path, { amount: 20 }],
      status: 200,
      body: { balance: 70, meter_id: "m" },
      spent: 1,
    },
    {
      name: "up to the largest integer",
      before: holding(MOST - 5),
      request: ["POST", path, { amount: 5 }],
      status: 200,
      body: { balance: MOST, meter_id: "m" },
      spent: 1,
    },
    {
      name: "past the largest integer: nothing changes",
      before: holding(MOST - 5),
      request: ["POST", path, { amount: 6 }],
      status: 400,
      code: "invalid_request",
      after: leaves(MOST - 5),
    },
    ...badIds("POST", "refill", { amount: 1 }),
    ...badValues("refill", "amount", AMOUNT_MESSAGE),
    ...notPositive("refill"),
    ...common("refill", { amount: 5 }, { amount: 4 }),
  ]);
});

describe("POST /v1/meter/{meterId}/reset", () => {
  const path = "/v1/meter/m/reset";
  const sets = (from: number, to: number): Scenario => ({
    name: `from ${from} to ${to}`,
    before: holding(from),
    request: ["POST", path, { balance: to }],
    status: 200,
    body: { balance: to, meter_id: "m" },
    spent: 1,
    after: leaves(to),
  });
  endpoint(() => server, "POST /v1/meter/{meterId}/reset", [
    sets(50, 20),
    sets(50, 80),
    sets(50, 50),
    sets(50, 0),
    sets(0, MOST),
    sets(MOST, 0),
    {
      name: "makes the meter, also with 0",
      request: ["POST", path, { balance: 0 }],
      status: 200,
      body: { balance: 0, meter_id: "m" },
      spent: 1,
      after: ({ server: { server: running } }) => {
        expect(running.kernel.db.one("SELECT 1 FROM meters WHERE meter_id = 'm'")()).not.toBeNull();
      },
    },
    ...badIds("POST", "reset", { balance: 1 }),
    ...badValues("reset", "balance", RESET_MESSAGE),
    {
      name: "a negative balance",
      request: ["POST", path, { balance: -1 }],
      status: 400,
      code: "validation_error",
      holds: { fields: { balance: [RESET_MESSAGE] } },
    },
    ...common("reset", { balance: 5 }, { balance: 4 }),
  ]);
});

describe("GET /v1/meter/{meterId}/history", () => {
  const path = "/v1/meter/m/history";
  const bad = (query: string, field: string): Scenario => ({
    name: query,
    before: holding(50),
    request: ["GET", `${path}?${query}`],
    status: 400,
    code: "validation_error",
    after: (_, { body }) => expect(Object.keys(body.fields as object)).toEqual([field]),
  });
  endpoint(() => server, "GET /v1/meter/{meterId}/history", [
    { name: "of a meter that does not exist", request: ["GET", path], status: 200, body: { entries: [] } },
    {
      name: "the entries",
      before: holding(50),
      request: ["GET", path],
      status: 200,
      holds: { entries: [{ kind: "reset", amount: 50, balance_after: 50 }] },
      lacks: ["cursor", "operation", "count"],
    },
    ...badIds("GET", "history"),
    bad("limit=0", "limit"),
    bad("limit=101", "limit"),
    bad("limit=1e1", "limit"),
    bad("cursor=x", "cursor"),
    bad(`cursor=${btoa("[-1]")}`, "cursor"),
    bad(`cursor=${btoa("[9007199254740991]")}`, "cursor"),
    { name: "without a key", as: "nobody", request: ["GET", path], status: 401, code: "unauthorized" },
  ]);
});

describe("ids of meters", () => {
  test("balance, history, deduct, refill and reset are valid ids", async () => {
    const account = await server.account({ balance: 100 });
    const names = ["balance", "history", "deduct", "refill", "reset"];
    for (const [index, name] of names.entries()) {
      const { body } = await account.post(`/v1/meter/${name}/refill`, { amount: index + 1 });
      expect(body).toEqual({ balance: index + 1, meter_id: name });
    }
    for (const [index, name] of names.entries()) {
      expect((await account.get(`/v1/meter/${name}/balance`)).body.balance).toBe(index + 1);
      expect((await account.get(`/v1/meter/${name}/history`)).body.entries).toHaveLength(1);
      expect((await account.post(`/v1/meter/${name}/deduct`, { amount: 1 })).body.balance).toBe(index);
      expect((await account.post(`/v1/meter/${name}/reset`, { balance: 9 })).body.balance).toBe(9);
    }
    expect((await account.get("/v1/meter/balance")).body).toEqual({
      balance: 100 - 15,
      user_id: account.userId,
    });
  });

  test("ids are case-sensitive", async () => {
    const account = await server.account();
    await account.post("/v1/meter/Customer/refill", { amount: 1 });
    await account.post("/v1/meter/customer/refill", { amount: 2 });
    expect((await account.get("/v1/meter/Customer/balance")).body.balance).toBe(1);
    expect((await account.get("/v1/meter/CUSTOMER/balance")).body.balance).toBe(0);
  });

  test("another account's meter with the same id is separate, with its own history and cursors", async () => {
    const [first, second] = [await server.account(), await server.account()];
    for (let count = 0; count < 3; count += 1) await first.post("/v1/meter/shared/refill", { amount: 5 });
    expect((await second.get("/v1/meter/shared/balance")).body.balance).toBe(0);
    expect((await second.get("/v1/meter/shared/history")).body.entries).toEqual([]);
    expect((await second.post("/v1/meter/shared/deduct", { amount: 1 })).status).toBe(402);
    const { body } = await first.get("/v1/meter/shared/history?limit=1");
    const stolen = encodeURIComponent(String(body.cursor));
    expect((await first.get(`/v1/meter/shared/history?cursor=${stolen}`)).body.entries).toHaveLength(2);
    expect((await second.get(`/v1/meter/shared/history?cursor=${stolen}`)).status).toBe(400);
    await second.post("/v1/meter/shared/refill", { amount: 5 });
    expect((await second.get(`/v1/meter/shared/history?cursor=${stolen}`)).status).toBe(400);
    expect((await first.get(`/v1/meter/other/history?cursor=${stolen}`)).status).toBe(400);
  });
});
