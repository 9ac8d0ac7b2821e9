import { afterAll, beforeAll, describe, expect } from "bun:test";
import { endpoint, type Scenario, USER_ID, type World } from "../../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

type Method = "GET" | "POST" | "PUT" | "DELETE";
type Request = readonly [method: Method, path: string, body?: object];

/** Refills the meter `m` and creates a hold of 60. */
async function holding({ account }: World): Promise<void> {
  await account.post("/v1/meter/m/refill", { amount: 100 });
  await account.post("/v1/meter/m/holds", { amount: 60, hold_id: "h" });
}

const closedFields = (how: "capture" | "release") => async (world: World) => {
  await holding(world);
  await world.account.post(`/v1/meter/m/holds/h/${how}`);
};

function available(figure: number): NonNullable<Scenario["after"]> {
  return async ({ account }) => {
    expect((await account.get("/v1/meter/m/balance")).body.available).toBe(figure);
  };
}

const nobody = (request: Request): Scenario => ({
  name: "no key",
  as: "nobody",
  request,
  status: 401,
  code: "unauthorized",
});
const wrong = (name: string, request: Request): Scenario => ({
  name,
  request,
  before: holding,
  status: 400,
  code: "validation_error",
  after: available(40),
});
const missing = (request: Request): Scenario => ({
  name: "no such thing",
  request,
  before: holding,
  status: 404,
  code: "not_found",
});

/** A change with the `Idempotency-Key` of another body. */
const reused = ([method, path, body]: Request, other: object, first: Method = method): Scenario => ({
  name: "an Idempotency-Key used for another body",
  request: [method, path, body],
  headers: { "idempotency-key": "k" },
  before: async (world) => {
    await holding(world);
    const headers = { "idempotency-key": "k" };
    await world.account.send(first, path, other, { headers });
  },
  status: 409,
  code: "conflict",
});

describe("POST /v1/meter/{meterId}/holds", () => {
  const path = "/v1/meter/m/holds";
  endpoint(() => server, "POST /v1/meter/{meterId}/holds", [
    {
      name: "a hold",
      request: ["POST", path, { amount: 40 }],
      before: holding,
      status: 201,
      spent: 1,
      holds: { status: "open", amount: 40, available: 0, metadata: null, ended_at: null },
    },
    {
      name: "the same again",
      request: ["POST", path, { amount: 60, hold_id: "h" }],
      before: holding,
      status: 200,
      spent: 1,
      after: available(40),
    },
    ...[0, -1].map((amount) => ({
      ...wrong(`an amount of ${amount}`, ["POST", path, { amount }]),
      code: "invalid_request",
    })),
    wrong("an amount that is no number", ["POST", path, { amount: "1" }]),
    wrong("an invalid meter id", ["POST", "/v1/meter/a.b/holds", { amount: 1 }]),
    nobody(["POST", path, { amount: 1 }]),
    {
      name: "more than is available",
      request: ["POST", path, { amount: 41 }],
      before: holding,
      status: 402,
      code: "insufficient_balance",
      after: available(40),
      holds: { balance: 100, available: 40, meter_id: "m" },
    },
    {
      name: "no credit to pay with",
      account: { balance: 0 },
      request: ["POST", path, { amount: 1 }],
      status: 402,
      code: "insufficient_balance",
      holds: { user_id: USER_ID },
      lacks: ["meter_id"],
    },
    {
      name: "other terms",
      request: ["POST", path, { amount: 61, hold_id: "h" }],
      before: holding,
      status: 409,
      code: "conflict",
      spent: 1,
      after: available(40),
    },
    reused(["POST", path, { amount: 1 }], { amount: 2 }),
  ]);
});

describe("GET /v1/meter/{meterId}/holds", () => {
  const path = "/v1/meter/m/holds";
  endpoint(() => server, "GET /v1/meter/{meterId}/holds", [
    {
      name: "all",
      request: ["GET", path],
      before: holding,
      status: 200,
      holds: { holds: [{ hold_id: "h" }] },
    },
    {
      name: "those of a status",
      request: ["GET", `${path}?status=captured`],
      before: holding,
      status: 200,
      body: { holds: [] },
    },
    {
      name: "of a meter that does not exist",
      request: ["GET", "/v1/meter/never/holds"],
      status: 200,
      body: { holds: [] },
    },
    wrong("an invalid status", ["GET", `${path}?status=over`]),
    wrong("an invalid limit", ["GET", `${path}?limit=101`]),
    wrong("an invalid cursor", ["GET", `${path}?cursor=x`]),
    nobody(["GET", path]),
  ]);
});

describe("GET /v1/meter/{meterId}/holds/{hold_id}", () => {
  const path = "/v1/meter/m/holds/h";
  endpoint(() => server, "GET /v1/meter/{meterId}/holds/{hold_id}", [
    { name: "a hold", request: ["GET", path], before: holding, status: 200, holds: { available: 40 } },
    wrong("an invalid id", ["GET", "/v1/meter/m/holds/a.b"]),
    missing(["GET", "/v1/meter/m/holds/other"]),
    missing(["GET", "/v1/meter/other/holds/h"]),
    nobody(["GET", path]),
  ]);
});

describe("POST …/capture", () => {
  const path = "/v1/meter/m/holds/h/capture";
  endpoint(() => server, "POST /v1/meter/{meterId}/holds/{hold_id}/capture", [
    {
      name: "a part",
      request: ["POST", path, { amount: 45 }],
      before: holding,
      status: 200,
      holds: { balance: 55, captured: 45, status: "captured" },
      after: available(55),
    },
    { name: "all", request: ["POST", path, {}], before: holding, status: 200, after: available(40) },
    wrong("an invalid amount", ["POST", path, { amount: -1 }]),
    {
      ...wrong("more than is held", ["POST", path, { amount: 61 }]),
      code: "invalid_request",
    },
    {
      ...wrong("a cap that is not final", ["POST", path, { amount: 1, over: "cap", final: false }]),
      code: "invalid_request",
    },
    nobody(["POST", path, {}]),
    missing(["POST", "/v1/meter/m/holds/other/capture", {}]),
    {
      name: "of a released one",
      request: ["POST", path, { amount: 1 }],
      before: closedFields("release"),
      status: 409,
      code: "conflict",
      holds: { status: "released" },
    },
  ]);
});

describe("POST …/release", () => {
  const path = "/v1/meter/m/holds/h/release";
  endpoint(() => server, "POST /v1/meter/{meterId}/holds/{hold_id}/release", [
    { name: "a hold", request: ["POST", path], before: holding, status: 200, after: available(100) },
    {
      name: "twice",
      request: ["POST", path],
      before: closedFields("release"),
      status: 200,
      after: available(100),
    },
    wrong("an invalid id", ["POST", "/v1/meter/m/holds/a.b/release"]),
    nobody(["POST", path]),
    missing(["POST", "/v1/meter/m/holds/other/release"]),
    {
      name: "of a captured one",
      request: ["POST", path],
      before: closedFields("capture"),
      status: 409,
      code: "conflict",
      holds: { status: "captured" },
    },
  ]);
});

describe("POST …/extend", () => {
  const path = "/v1/meter/m/holds/h/extend";
  endpoint(() => server, "POST /v1/meter/{meterId}/holds/{hold_id}/extend", [
    {
      name: "from now on",
      request: ["POST", path, { ttl_seconds: 86_400 }],
      before: holding,
      status: 200,
      holds: { status: "open" },
      after: async ({ account }, { body }) => {
        expect(Date.parse(String(body.expires_at)) - server.clock.now()).toBe(86_400_000);
        await server.clock.advance(300_000);
        expect((await account.get("/v1/meter/m/balance")).body.held).toBe(60);
      },
    },
    wrong("too long", ["POST", path, { ttl_seconds: 86_401 }]),
    nobody(["POST", path, { ttl_seconds: 1 }]),
    missing(["POST", "/v1/meter/m/holds/other/extend", { ttl_seconds: 1 }]),
    {
      name: "of one that ended",
      request: ["POST", path, { ttl_seconds: 1 }],
      before: closedFields("capture"),
      status: 409,
      code: "conflict",
      holds: { status: "captured" },
    },
  ]);
});

const URL = "https://example.com/low";
const TERMS: readonly (readonly [path: string, route: string, body: object, other: object, bad: object])[] = [
  [
    "/v1/meter/m/plan",
    "/v1/meter/{meterId}/plan",
    { amount: 5, every: "week" },
    { amount: 6, every: "day" },
    {},
  ],
  [
    ...["/v1/meter/m/alert", "/v1/meter/{meterId}/alert"],
    ...[{ threshold: 1, webhook_url: URL }, { threshold: 2, webhook_url: URL }, { threshold: 1 }],
  ] as never,
  [
    ...["/v1/meter/alert", "/v1/meter/alert"],
    ...[{ threshold: 1, webhook_url: URL }, { threshold: 2, webhook_url: URL }, { threshold: 1 }],
  ] as never,
];

describe.each(TERMS)("%s", (path, route, body, other, bad) => {
  const set = async ({ account }: World) => {
    expect((await account.put(path, body)).status).toBe(200);
  };
  const isWrong = route.includes("{")
    ? [wrong("an invalid meter id", ["GET", path.replace("/m/", "/a.b/")])]
    : [];
  const put: Request = ["PUT", path, body];
  const created = route.includes("{")
    ? [
        { name: "creates the meter", request: put, status: 200, holds: body, spent: 1 },
        {
          name: "no credit for a new meter",
          account: { balance: 0 },
          request: put,
          status: 402,
          code: "insufficient_balance" as const,
        },
      ]
    : [];
  endpoint(() => server, `PUT ${route}`, [
    ...created,
    { name: "sets it", request: put, before: holding, status: 200, holds: body },
    { name: "replaces it", request: ["PUT", path, other], before: set, status: 200, holds: other },
    wrong("a body without what it needs", ["PUT", path, bad]),
    nobody(put),
    reused(put, other),
  ]);
  endpoint(() => server, `GET ${route}`, [
    { name: "reads it", request: ["GET", path], before: set, status: 200, holds: body },
    missing(["GET", path]),
    ...isWrong,
    nobody(["GET", path]),
  ]);
  const gone: NonNullable<Scenario["after"]> = async ({ account }) => {
    expect((await account.get(path)).status).toBe(404);
  };
  endpoint(() => server, `DELETE ${route}`, [
    { name: "takes it away", request: ["DELETE", path], before: set, status: 200, after: gone },
    { name: "takes nothing away", request: ["DELETE", path], status: 200, body: { success: true } },
    {
      ...wrong("an Idempotency-Key that is too long", ["DELETE", path]),
      headers: { "idempotency-key": "k".repeat(256) },
    },
    reused(["DELETE", path], body, "PUT"),
    ...isWrong.map((one) => ({ ...one, request: ["DELETE", one.request[1]] as const })),
    nobody(["DELETE", path]),
  ]);
});
