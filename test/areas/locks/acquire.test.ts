import { afterAll, beforeAll, describe, expect } from "bun:test";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { acquire, release, UUID_V4, waitForDepth } from "./support.ts";

const TOKEN = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";
const OTHER_TOKEN = "00000000-0000-0000-0000-000000000000";
const KEY_MESSAGE = "must be 1 to 256 letters, digits, dashes, underscores or colons";
const DURATION_MESSAGE = 'must be an integer from 1000 to 900000 (milliseconds), or a text such as "1s"';
const TIMEOUT_MESSAGE =
  'must be 0, or an integer from 1000 to 900000 (milliseconds), or a text such as "10s"';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Acquires the lock `k` with a token. */
function holding(token: string, body: object = {}): (world: World) => Promise<unknown> {
  return ({ account }) => acquire(account, "k", { token, ...body });
}

/** Expects the lock `k` to have this state after a scenario. */
function leaves(state: Record<string, unknown>): NonNullable<Scenario["after"]> {
  return async ({ account }) => expect((await account.get("/v1/latch/k")).body).toEqual(state);
}

const FREE = leaves({ locked: false, queue_depth: 0, ttl_remaining: null });

function badKeys(path: (key: string) => Scenario["request"]): Scenario[] {
  const keys = ["a.b", "a%20b", "a%2Fb", "%C3%BC", "a%00", "k%0A", "%25", "%zz", "*", "a".repeat(257), "~"];
  return keys.map((key) => ({
    name: `the key ${key.slice(0, 12)} (${key.length} characters)`,
    request: path(key),
    status: 400,
    code: "validation_error",
    holds: { fields: { key: [KEY_MESSAGE] } },
  }));
}

function badBodies(): Scenario[] {
  const invalid = (name: string, body: unknown, fields: object): Scenario => ({
    name,
    request: ["POST", "/v1/latch/k/acquire", body],
    status: 400,
    code: "validation_error",
    holds: { fields },
    after: FREE,
  });
  const durations = [999, 900_001, 0, -1, 1000.5, "10000", null, true, [], {}, 1e300];
  const tokens = [
    "",
    "token",
    null,
    7,
    TOKEN.replaceAll("-", ""),
    `${TOKEN} `,
    `${TOKEN}\n`,
    `{${TOKEN}}`,
    TOKEN.replace("6", "g"),
  ];
  return [
    ...durations.map((ttl) => invalid(`ttl ${JSON.stringify(ttl)}`, { ttl }, { ttl: [DURATION_MESSAGE] })),
    ...durations
      .filter((timeout) => timeout !== 0)
      .map((timeout) =>
        invalid(`timeout ${JSON.stringify(timeout)}`, { timeout }, { timeout: [TIMEOUT_MESSAGE] }),
      ),
    ...tokens.map((token) =>
      invalid(`token ${JSON.stringify(token)}`, { token }, { token: ["must be a UUID"] }),
    ),
    invalid(
      "two wrong fields, both named",
      { ttl: 1, timeout: -1 },
      { ttl: [DURATION_MESSAGE], timeout: [TIMEOUT_MESSAGE] },
    ),
    invalid("not JSON", "ttl=1000", { body: ["is not JSON: it must be one JSON object"] }),
    invalid("an array", [], { body: ["must be a JSON object"] }),
    invalid("a number", "12", { body: ["must be a JSON object"] }),
    invalid("bytes that are no text", new Uint8Array([0x7b, 0xff, 0x7d]), {
      body: ["must be UTF-8 text, not compressed"],
    }),
  ];
}

/** An acquire that succeeds and has a lease of `ttl` from the start of the clock. */
function granted(
  name: string,
  body: unknown,
  ttl: number,
  more: { token?: unknown; key?: string; warnings?: string[] } = {},
): Scenario {
  const key = more.key ?? "k";
  return {
    name,
    request: ["POST", `/v1/latch/${key}/acquire`, body],
    status: 200,
    after: async ({ account }, response) => {
      expect(response.body).toEqual({
        status: "acquired",
        key: decodeURIComponent(key),
        token: more.token ?? expect.stringMatching(UUID_V4),
        fencing_token: expect.any(Number),
        expires_at: TEST_START_MS + ttl,
        reentrant: false,
        ...(more.warnings === undefined ? {} : { warnings: more.warnings }),
      });
      const state = await account.get(`/v1/latch/${key}`);
      expect(state.body).toEqual({
        locked: true,
        queue_depth: 0,
        ttl_remaining: ttl,
        mode: "exclusive",
        holders: 1,
      });
    },
  };
}

describe("POST /v1/latch/{key}/acquire", () => {
  endpoint(() => server, "POST /v1/latch/{key}/acquire", [
    { ...granted("an account without credits: locks are free", {}, 10_000), account: { balance: 0 } },
    granted("no body: the defaults", undefined, 10_000),
    granted("the longest ttl", { ttl: 900_000 }, 900_000),
    granted("the shortest ttl", { ttl: 1_000 }, 1_000),
    granted("the longest timeout", { timeout: 900_000 }, 10_000),
    granted("the shortest timeout", { timeout: 1_000 }, 10_000),
    granted("integers in other notations", '{"ttl": 2e3, "timeout": 3000.0}', 2_000),
    granted("unknown fields are ignored", { lease: "x", __proto__: 1 }, 10_000, {
      warnings: ["Unknown field `lease`."],
    }),
    granted("the caller's token becomes the lock's", { token: TOKEN }, 10_000, { token: TOKEN }),
    granted("a token in capitals stays as it was sent", { token: TOKEN.toUpperCase() }, 10_000, {
      token: TOKEN.toUpperCase(),
    }),
    granted("the longest key", {}, 10_000, { key: "k".repeat(256) }),
    granted("the shortest key", {}, 10_000, { key: "7" }),
    granted("every kind of character, one of them escaped", {}, 10_000, { key: "aZ09_-:%3A" }),
    granted("a key that reads like a path of its own", {}, 10_000, { key: "acquire" }),
    {
      name: "the holder's token: reentrant, with the new ttl",
      before: holding(TOKEN),
      request: ["POST", "/v1/latch/k/acquire", { token: TOKEN, ttl: 5_000 }],
      status: 200,
      holds: { status: "acquired", token: TOKEN, reentrant: true, expires_at: TEST_START_MS + 5_000 },
      after: leaves({ locked: true, queue_depth: 0, ttl_remaining: 5_000, mode: "exclusive", holders: 1 }),
    },
    {
      name: "released before: a new token and not reentrant",
      before: async ({ account }) => {
        const { token } = await acquire(account, "k", { token: TOKEN });
        await release(account, "k", token);
      },
      request: ["POST", "/v1/latch/k/acquire", { token: TOKEN }],
      status: 200,
      holds: { token: TOKEN, reentrant: false },
    },
    {
      name: "an Idempotency-Key has no effect: the token replaces it",
      before: ({ account }) =>
        account.post("/v1/latch/a/acquire", {}, { headers: { "idempotency-key": "1" } }),
      request: ["POST", "/v1/latch/b/acquire", {}],
      headers: { "idempotency-key": "1" },
      status: 200,
      holds: { key: "b" },
    },
    {
      name: "the holder's token in the other mode",
      before: holding(TOKEN),
      request: ["POST", "/v1/latch/k/acquire", { token: TOKEN, mode: "shared" }],
      status: 409,
      code: "conflict",
    },
    {
      name: "held by another until the deadline",
      before: async (world) => {
        await holding(OTHER_TOKEN)(world);
        void waitForDepth(world.account, "k", 1).then(() => server.clock.advance(1_000));
      },
      request: ["POST", "/v1/latch/k/acquire", { timeout: 1_000 }],
      status: 408,
      code: "timeout",
    },
    {
      name: "without a key",
      as: "nobody",
      request: ["POST", "/v1/latch/k/acquire", {}],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "a body of more than a mebibyte",
      request: ["POST", "/v1/latch/k/acquire", { token: "x".repeat(1024 * 1024) }],
      status: 413,
      code: "request_too_large",
      after: FREE,
    },
    ...badKeys((key) => ["POST", `/v1/latch/${key}/acquire`, {}]),
    ...badBodies(),
  ]);
});
