import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endpoint, type Scenario, USER_ID } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const MOST = Number.MAX_SAFE_INTEGER;
const AMOUNT_MESSAGE = "must be an integer from 1 to 9007199254740991";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Requests that both changes reject. */
function refusals(path: string): Scenario[] {
  const invalid = (name: string, body: unknown, message = AMOUNT_MESSAGE): Scenario => ({
    name,
    request: ["POST", path, body],
    status: 400,
    code: "validation_error",
    holds: { fields: { amount: [message] } },
  });
  const notPositive = (amount: number): Scenario => ({
    name: `the amount ${amount} is not positive`,
    request: ["POST", path, { amount }],
    status: 400,
    code: "invalid_request",
    lacks: ["fields"],
  });
  return [
    invalid("no body", undefined, `is required: it ${AMOUNT_MESSAGE}`),
    invalid("no amount", { Amount: 5 }, `is required: it ${AMOUNT_MESSAGE}`),
    invalid("a text", { amount: "5" }),
    invalid("a fraction", { amount: 0.5 }),
    invalid("a negative fraction", { amount: -0.5 }),
    invalid("null", { amount: null }),
    invalid("true", { amount: true }),
    invalid("an array", { amount: [5] }),
    invalid("past the largest integer", { amount: MOST + 1 }),
    notPositive(0),
    notPositive(-1),
    notPositive(-MOST),
    notPositive(-1e300),
    {
      name: "minus zero",
      request: ["POST", path, '{"amount": -0}'],
      status: 400,
      code: "invalid_request",
    },
    {
      name: "without a key",
      as: "nobody",
      request: ["POST", path, { amount: 5 }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "an Idempotency-Key used for another amount",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.post(path, { amount: 1 }, { headers: { "idempotency-key": "k" } }),
      request: ["POST", path, { amount: 5 }],
      status: 409,
      code: "conflict",
    },
  ];
}

describe("GET /v1/meter/balance", () => {
  endpoint(() => server, "GET /v1/meter/balance", [
    {
      name: "the balance and its owner",
      request: ["GET", "/v1/meter/balance"],
      status: 200,
      body: { balance: 100, user_id: USER_ID },
    },
    {
      name: "a balance of 0 can be read",
      account: { balance: 0 },
      request: ["GET", "/v1/meter/balance"],
      status: 200,
      body: { balance: 0, user_id: USER_ID },
    },
    {
      name: "without a key",
      as: "nobody",
      request: ["GET", "/v1/meter/balance"],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

describe("POST /v1/meter/deduct", () => {
  const path = "/v1/meter/deduct";
  const insufficient = (name: string, balance: number, amount: number): Scenario => ({
    name,
    account: { balance },
    request: ["POST", path, { amount }],
    status: 402,
    code: "insufficient_balance",
    holds: { balance, user_id: USER_ID },
    lacks: ["meter_id"],
  });
  endpoint(() => server, "POST /v1/meter/deduct", [
    {
      name: "takes the amount, and nothing for the request",
      request: ["POST", path, { amount: 30 }],
      status: 200,
      body: { balance: 70, user_id: USER_ID },
      spent: 30,
    },
    {
      name: "takes the last credit",
      request: ["POST", path, { amount: 100 }],
      status: 200,
      body: { balance: 0, user_id: USER_ID },
      spent: 100,
    },
    {
      name: "takes the largest amount",
      account: { balance: MOST },
      request: ["POST", path, { amount: MOST }],
      status: 200,
      body: { balance: 0, user_id: USER_ID },
      spent: MOST,
    },
    insufficient("one more than there is", 100, 101),
    insufficient("anything from nothing", 0, 1),
    insufficient("the largest amount", 100, MOST),
    ...refusals(path),
  ]);
});

describe("POST /v1/meter/refill", () => {
  const path = "/v1/meter/refill";
  endpoint(() => server, "POST /v1/meter/refill", [
    {
      name: "adds the amount",
      request: ["POST", path, { amount: 30 }],
      status: 200,
      body: { balance: 130, user_id: USER_ID },
      spent: -30,
    },
    {
      name: "works from 0, and up to the largest integer",
      account: { balance: 0 },
      request: ["POST", path, { amount: MOST }],
      status: 200,
      body: { balance: MOST, user_id: USER_ID },
      spent: -MOST,
    },
    {
      name: "past the largest integer: nothing changes",
      account: { balance: MOST - 4 },
      request: ["POST", path, { amount: 5 }],
      status: 400,
      code: "invalid_request",
    },
    ...refusals(path),
  ]);
});

describe("GET /v1/meter/history", () => {
  const path = "/v1/meter/history";
  const bad = (query: string, field: string): Scenario => ({
    name: query,
    request: ["GET", `${path}?${query}`],
    status: 400,
    code: "validation_error",
    after: (_, { body }) => expect(Object.keys(body.fields as object)).toEqual([field]),
  });
  endpoint(() => server, "GET /v1/meter/history", [
    {
      name: "the initial credits, at first",
      request: ["GET", path],
      status: 200,
      holds: { entries: [{ kind: "grant", amount: 100, balance_after: 100, request_id: null }] },
      lacks: ["cursor", "operation"],
    },
    {
      name: "empty without initial credits",
      account: { balance: 0 },
      request: ["GET", path],
      status: 200,
      body: { entries: [] },
    },
    bad("limit=0", "limit"),
    bad("limit=101", "limit"),
    bad("limit=x", "limit"),
    bad("cursor=x", "cursor"),
    bad(`cursor=${btoa('["x"]')}`, "cursor"),
    { name: "without a key", as: "nobody", request: ["GET", path], status: 401, code: "unauthorized" },
  ]);
});

test("exactly as many concurrent deductions succeed as the balance allows", async () => {
  const account = await server.account({ balance: 25 });
  const responses = await Promise.all(
    Array.from({ length: 80 }, () => account.post("/v1/meter/deduct", { amount: 1 })),
  );
  const balances = responses.filter(({ status }) => status === 200).map(({ body }) => Number(body.balance));
  expect(balances.sort((a, b) => a - b)).toEqual(Array.from({ length: 25 }, (_, index) => index));
  expect(responses.filter(({ status }) => status === 402)).toHaveLength(55);
  expect((await account.get("/v1/meter/balance")).body.balance).toBe(0);
});
