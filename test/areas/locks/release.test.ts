import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { acquire, release } from "./support.ts";

const LOCKS = join(import.meta.dir, "../../../src/areas/locks");
const TOKEN = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
const KEY_MESSAGE = "must be 1 to 256 letters, digits, dashes, underscores or colons";
const TOKEN_MESSAGE = "must be the token of the lock's holder, a string";
const RELEASE = ["POST", "/v1/latch/k/release", { token: TOKEN }] as const;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const held = ({ account }: World) => acquire(account, "k", { token: TOKEN, ttl: 1_000 });

/** Expects the lock `k` to be held or free. */
function leaves(locked: boolean): NonNullable<Scenario["after"]> {
  return async ({ account }) => expect((await account.get("/v1/latch/k")).body).toMatchObject({ locked });
}

function wrongToken(token: string): Scenario {
  return {
    name: `another token: ${JSON.stringify(token).slice(0, 20)}`,
    before: held,
    request: ["POST", "/v1/latch/k/release", { token }],
    status: 403,
    code: "forbidden",
    lacks: [TOKEN],
    after: leaves(true),
  };
}

test("no code of locks compares tokens in variable time", async () => {
  const compared = /\btoken [!=]==? (?!null\b)|[!=]==? [\w.?]*\btoken\b/i;
  const files = [...new Bun.Glob("*.ts").scanSync(LOCKS)];
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) {
    const lines = (await Bun.file(join(LOCKS, file)).text()).split("\n");
    expect(
      lines.filter((line) => compared.test(line)),
      file,
    ).toEqual([]);
  }
});

describe("POST /v1/latch/{key}/release", () => {
  endpoint(() => server, "POST /v1/latch/{key}/release", [
    {
      name: "the holder's token",
      before: held,
      request: RELEASE,
      status: 200,
      body: { status: "released" },
      after: leaves(false),
    },
    {
      name: "an account without credits: locks are free",
      account: { balance: 0 },
      before: held,
      request: RELEASE,
      status: 200,
    },
    { name: "a lock that was never acquired", request: RELEASE, status: 404, code: "not_found" },
    {
      name: "released twice",
      before: async (world) => {
        await held(world);
        await release(world.account, "k", TOKEN);
      },
      request: RELEASE,
      status: 404,
      code: "not_found",
    },
    {
      name: "expired",
      before: async (world) => {
        await held(world);
        await server.clock.advance(1_000);
      },
      request: RELEASE,
      status: 404,
      code: "not_found",
    },
    {
      name: "expired, then acquired by another",
      before: async (world) => {
        await held(world);
        await server.clock.advance(1_000);
        await acquire(world.account, "k");
      },
      request: RELEASE,
      status: 403,
      code: "forbidden",
      after: leaves(true),
    },
    ...["", "x", TOKEN.toUpperCase(), `${TOKEN} `, "\u0000", "🔒", "x".repeat(60_000)].map(wrongToken),
    {
      name: "repeated with its Idempotency-Key: released once, the same response twice",
      before: async (world) => {
        await held(world);
        const headers = { "idempotency-key": "once" };
        await world.account.post("/v1/latch/k/release", { token: TOKEN }, { headers });
        await acquire(world.account, "k", { token: TOKEN });
      },
      request: RELEASE,
      headers: { "idempotency-key": "once" },
      status: 200,
      after: leaves(true),
    },
    {
      name: "the Idempotency-Key of another release",
      before: ({ account }) =>
        account.post("/v1/latch/other/release", { token: "x" }, { headers: { "idempotency-key": "twice" } }),
      request: RELEASE,
      headers: { "idempotency-key": "twice" },
      status: 409,
      code: "conflict",
    },
    ...[undefined, {}].map(
      (body): Scenario => ({
        name: `without a token: ${JSON.stringify(body)}`,
        before: held,
        request: ["POST", "/v1/latch/k/release", body],
        status: 400,
        code: "validation_error",
        holds: { fields: { token: [`is required: it ${TOKEN_MESSAGE}`] } },
        after: leaves(true),
      }),
    ),
    ...[7, null, true, [TOKEN], { token: TOKEN }].map(
      (token): Scenario => ({
        name: `the token ${JSON.stringify(token)}`,
        before: held,
        request: ["POST", "/v1/latch/k/release", { token }],
        status: 400,
        code: "validation_error",
        holds: { fields: { token: [TOKEN_MESSAGE] } },
        after: leaves(true),
      }),
    ),
    ...["a%2Fb", "a.b", "%zz", "k".repeat(257)].map(
      (key): Scenario => ({
        name: `the key ${key.slice(0, 12)} (${key.length} characters)`,
        request: ["POST", `/v1/latch/${key}/release`, { token: TOKEN }],
        status: 400,
        code: "validation_error",
        holds: { fields: { key: [KEY_MESSAGE] } },
      }),
    ),
    { name: "without a key", as: "nobody", request: RELEASE, status: 401, code: "unauthorized" },
    {
      name: "a body of more than a mebibyte",
      request: ["POST", "/v1/latch/k/release", { token: "x".repeat(1024 * 1024) }],
      status: 413,
      code: "request_too_large",
    },
  ]);
});

describe("GET /v1/latch/{key}", () => {
  endpoint(() => server, "GET /v1/latch/{key}", [
    {
      name: "free",
      request: ["GET", "/v1/latch/k"],
      status: 200,
      body: { locked: false, queue_depth: 0, ttl_remaining: null },
    },
    {
      name: "held",
      before: async (world) => {
        await held(world);
        await server.clock.advance(250);
      },
      request: ["GET", "/v1/latch/k"],
      status: 200,
      body: { locked: true, queue_depth: 0, ttl_remaining: 750, mode: "exclusive", holders: 1 },
    },
    {
      name: "released",
      before: async (world) => {
        await held(world);
        await release(world.account, "k", TOKEN);
      },
      request: ["GET", "/v1/latch/k"],
      status: 200,
      body: { locked: false, queue_depth: 0, ttl_remaining: null },
    },
    {
      name: "a slash in the key",
      request: ["GET", "/v1/latch/a%2Fb"],
      status: 400,
      code: "validation_error",
      holds: { fields: { key: [KEY_MESSAGE] } },
    },
    {
      name: "without a key",
      as: "nobody",
      request: ["GET", "/v1/latch/k"],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

test("locks of two projects with the same key are independent", async () => {
  const [first, second] = [await server.account(), await server.account()];
  const mine = await acquire(first, "shared", { token: TOKEN });
  const theirs = await acquire(second, "shared", { token: TOKEN });
  expect(theirs.reentrant).toBe(false);
  expect(theirs.fencingToken).toBeGreaterThan(mine.fencingToken);
  expect((await release(first, "shared", TOKEN)).status).toBe(200);
  expect((await second.get("/v1/latch/shared")).body).toMatchObject({ locked: true });
  expect((await release(first, "shared", TOKEN)).status).toBe(404);
});
