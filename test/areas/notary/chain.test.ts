import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { JSON_LEVELS_MAX } from "../../../src/json-text.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());

const init = ({ account }: World): Promise<unknown> => account.post("/v1/witness/sys/init");

/** A request with an Idempotency-Key. Reusing the key for another request is a conflict and free of charge. */
const USED_KEY = { headers: { "idempotency-key": "used" } };

/** No server listens at this address. */
const NOBODYS_STORAGE = {
  endpoint: "http://127.0.0.1:9",
  bucket: "receipts",
  region: "eu",
  accessKeyId: "A".repeat(16),
  secretAccessKey: "s".repeat(16),
};

const CHAIN_ID = /^wc_[A-Za-z0-9_-]{32}$/;

describe("POST /v1/witness/sys/init", () => {
  endpoint(() => server, "POST /v1/witness/sys/init", [
    {
      name: "creates the chain and its key pair",
      request: ["POST", "/v1/witness/sys/init"],
      status: 201,
      holds: { success: true, createdAt: new Date(TEST_START_MS).toISOString() },
      spent: 1,
      after: async ({ account }, response) => {
        expect(response.body.chain_id).toMatch(CHAIN_ID);
        expect(Object.keys(response.body)).toEqual(["success", "publicKey", "createdAt", "chain_id"]);
        const retryLater = await account.post("/v1/witness/sys/init");
        expect(retryLater.status).toBe(200);
        expect(retryLater.body).toEqual({ success: false, chain_id: response.body.chain_id });
        const key = await account.get(`/v1/witness/pubkey/${response.body.chain_id}`);
        expect(key.body).toEqual(response.body.publicKey as Record<string, unknown>);
        // The second request is charged as well.
        await account.post("/v1/meter/refill", { amount: 1 });
      },
    },
    {
      name: "a second call changes nothing",
      before: init,
      request: ["POST", "/v1/witness/sys/init"],
      status: 200,
      holds: { success: false },
      lacks: ["publicKey"],
      spent: 1,
    },
    {
      name: "no key",
      as: "nobody",
      request: ["POST", "/v1/witness/sys/init"],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "Idempotency-Key of another request",
      before: ({ account }) => account.post("/v1/witness/log", {}, USED_KEY),
      request: ["POST", "/v1/witness/sys/init"],
      ...USED_KEY,
      status: 409,
      code: "conflict",
    },
    {
      name: "an Idempotency-Key that is too long",
      request: ["POST", "/v1/witness/sys/init"],
      headers: { "idempotency-key": "k".repeat(256) },
      status: 400,
      code: "validation_error",
    },
    {
      name: "without credits no chain is created",
      account: { balance: 0 },
      request: ["POST", "/v1/witness/sys/init"],
      status: 402,
      code: "insufficient_balance",
      after: async ({ account }) => {
        expect((await account.get("/v1/witness/receipts")).body).toEqual({ receipts: [] });
        await account.post("/v1/meter/refill", { amount: 1 });
        expect((await account.post("/v1/witness/sys/init")).status).toBe(201);
      },
    },
  ] satisfies Scenario[]);

  test("concurrent requests create one chain", async () => {
    const account = await server.account();
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => account.post("/v1/witness/sys/init")),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
    expect(new Set(responses.map(({ body }) => body.chain_id)).size).toBe(1);
  });
});

/** A rejected log, with the expected field and message. */
function rejected(name: string, body: unknown, field: string, message: string | RegExp): Scenario {
  const text = typeof message === "string" ? message : expect.stringMatching(message);
  return {
    name,
    before: init,
    request: ["POST", "/v1/witness/log", body],
    status: 400,
    code: "validation_error",
    after: async ({ account }, response) => {
      expect(response.body.fields).toEqual({ [field]: [text] } as object);
      expect((await account.get("/v1/witness/receipts")).body).toEqual({ receipts: [] });
    },
  };
}

/** An accepted log, with the expected text of the receipt. */
function accepted(name: string, body: string, logText: string): Scenario {
  return {
    name,
    before: init,
    request: ["POST", "/v1/witness/log", body],
    status: 200,
    spent: 1,
    after: ({ account }, response) => {
      expect(response.text).toContain(`"log":${logText}`);
      expect(response.body.content_hash).toBe(new Bun.CryptoHasher("sha256").update(logText).digest("hex"));
      return account.post("/v1/witness/verify", { receipt: response.body }).then(({ body }) => {
        expect(body).toMatchObject({ valid: true });
      });
    },
  };
}

const EMPTY_LOG = "must be a JSON object with at least one member";
const INEXACT = /^is a number that JSON readers cannot carry exactly/;
const nested = (levels: number): string => `{"log":{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}}`;

describe("POST /v1/witness/log", () => {
  endpoint(() => server, "POST /v1/witness/log", [
    {
      name: "appends the first receipt",
      before: init,
      request: ["POST", "/v1/witness/log", { log: { event: "user.login", user: 42 } }],
      status: 200,
      spent: 1,
      holds: {
        version: 1,
        sequence_id: "1",
        content_hash: "0ea94b7f1da05893c237f88afa7cfac04c5302a5bd433a3e885c24665ef8e23e",
        prev_hash: "0".repeat(64),
        timestamp: TEST_START_MS,
        log: { event: "user.login", user: 42 },
      },
      after: (_, { body }) => {
        expect(Object.keys(body)).toEqual([
          "version",
          "sequence_id",
          "content_hash",
          "prev_hash",
          "chain_hash",
          "signature",
          "timestamp",
          "public_key",
          "log",
        ]);
        expect(body.signature).toMatch(/^[0-9a-f]{128}$/);
      },
    },
    accepted(
      "other fields than log are ignored",
      '{"x":1,"x":12345678901234567890,"log":{"a":1}}',
      '{"a":1}',
    ),
    accepted("spaces and escapes do not matter", '{ "log" : { "\\u0061" : "\\u00e9\\/" } }', '{"a":"é/"}'),
    accepted(
      "numbers that are carried",
      '{"log":{"n":[1.0,1e2,-0,0.10,1E400,9007199254740991]}}'.replace("1E400", "1e21"),
      '{"n":[1,100,0,0.1,1e+21,9007199254740991]}',
    ),
    accepted(
      "__proto__ is a name like any other",
      '{"log":{"__proto__":{"x":1},"constructor":2}}',
      '{"__proto__":{"x":1},"constructor":2}',
    ),
    accepted(
      "names that look like indexes come first, as JSON.stringify has them",
      '{"log":{"b":1,"2":2,"1":3}}',
      '{"1":3,"2":2,"b":1}',
    ),
    accepted(
      "line separators, lone surrogates and zeros",
      '{"log":{"t":"\u2028\\ud800\\u0000\u{1f680}"}}',
      '{"t":"\u2028\\ud800\\u0000\u{1f680}"}',
    ),
    accepted("an empty name", '{"log":{"":null}}', '{"":null}'),
    accepted("as many levels as are allowed", nested(JSON_LEVELS_MAX), nested(JSON_LEVELS_MAX).slice(7, -1)),
    rejected("one level more", nested(JSON_LEVELS_MAX + 1), "body", "is nested deeper than 501 levels"),
    rejected("no log", {}, "log", "is required, unless content_hash is given"),
    rejected("an empty log", { log: {} }, "log", EMPTY_LOG),
    rejected("an array", { log: [1] }, "log", EMPTY_LOG),
    rejected("text", { log: "x" }, "log", EMPTY_LOG),
    rejected("null", { log: null }, "log", EMPTY_LOG),
    rejected(
      "a number with too many digits",
      '{"log":{"a":[0,{"b":12345678901234567890}]}}',
      "log.a.1.b",
      INEXACT,
    ),
    rejected("a number that is too large", '{"log":{"a":1e400}}', "log.a", INEXACT),
    rejected("a fraction that is cut", '{"log":{"a":0.1234567890123456789}}', "log.a", INEXACT),
    rejected("a name twice", '{"log":{"a":1,"b":2,"a":1}}', "log.a", "stands twice in one object"),
    rejected(
      "a name twice, once escaped",
      '{"log":{"x":{"a":1,"\\u0061":2}}}',
      "log.x.a",
      "stands twice in one object",
    ),
    rejected("two logs", '{"log":{"a":1},"log":{"a":1}}', "log", "stands twice in one object"),
    rejected("not JSON", '{"log":{"a":1}', "body", /is not JSON/),
    {
      name: "no key",
      as: "nobody",
      request: ["POST", "/v1/witness/log", { log: { a: 1 } }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "no credits",
      account: { balance: 1 },
      before: init,
      request: ["POST", "/v1/witness/log", { log: { a: 1 } }],
      status: 402,
      code: "insufficient_balance",
      after: async ({ account }) => {
        expect((await account.get("/v1/witness/receipts")).body).toEqual({ receipts: [] });
      },
    },
    {
      name: "buffers the copy when the storage does not respond",
      before: async (world: World) => {
        await init(world);
        await world.account.post("/v1/witness/config", NOBODYS_STORAGE);
      },
      request: ["POST", "/v1/witness/log", { log: { a: 1 } }],
      status: 202,
      spent: 1,
      holds: { sequence_id: "1", storage_status: "buffered" },
      after: (_, { headers }) => {
        expect(headers.get("x-witness-status")).toBe("buffered");
      },
    },
    {
      name: "before init: rejected, and charged",
      request: ["POST", "/v1/witness/log", { log: { a: 1 } }],
      status: 409,
      code: "conflict",
      spent: 1,
    },
  ] satisfies Scenario[]);

  test("each receipt follows the previous one and has its creation time", async () => {
    const account = await server.account();
    await account.post("/v1/witness/sys/init");
    const first = (await account.post("/v1/witness/log", { log: { n: 1 } })).body;
    await server.clock.advance(1_000);
    const second = (await account.post("/v1/witness/log", { log: { n: 2 } })).body;
    expect(second).toMatchObject({ sequence_id: "2", prev_hash: first.chain_hash });
    expect(Number(second.timestamp) - Number(first.timestamp)).toBe(1_000);
  });

  test("a repeated request with an Idempotency-Key returns the same receipt, byte for byte", async () => {
    const account = await server.account({ balance: 100 });
    await account.post("/v1/witness/sys/init");
    const send = () =>
      account.post("/v1/witness/log", { log: { n: 1 } }, { headers: { "idempotency-key": "k" } });
    const [first, second] = [await send(), await send()];
    expect(second.text).toBe(first.text);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect((await account.get("/v1/witness/receipts")).body.receipts).toHaveLength(1);
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(98);
  });
});
