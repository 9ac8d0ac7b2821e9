import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CONTEXT_LEVELS_MAX } from "../../../../src/areas/flags/evaluation/schema.ts";
import { CONTEXT_BODY } from "../../../../src/areas/flags/ofrep/rejections.ts";
import type { Answer, Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { CHECKOUT_RULES } from "../checkout.ts";

let server: TestServer;
let account: Client;
let browser: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 1_000 });
  browser = await keyWith(account, ["ofrep:read"]);
  await saveFlags(account);
});
afterAll(() => server.stop());

const PATH = "/ofrep/v1/evaluate/flags";
/** A flag with a rule, a split and a default. */
const CHECKOUT = {
  flag_key: "new-checkout",
  enabled: true,
  rules: CHECKOUT_RULES,
  default: { variant: "off" },
  metadata: { owner: "checkout", cost: 2 },
};

async function saveFlags(client: Client): Promise<void> {
  const flags = [
    CHECKOUT,
    { flag_key: "plain", enabled: true },
    { flag_key: "off", enabled: false },
    {
      flag_key: "theme",
      enabled: false,
      type: "string",
      variants: { red: "#f00" },
      default: { variant: "red" },
    },
    { flag_key: "secret", enabled: true, server_only: true },
    { flag_key: "gone", enabled: true, archived: true },
  ];
  for (const flag of flags) {
    const { status, text } = await client.post("/v1/gate", flag);
    expect(status, text).toBe(201);
  }
}

async function keyWith(owner: Client, scopes: readonly string[]): Promise<Client> {
  const { body } = await owner.post("/v1/keys", { prefix: "sm", name: "k", scopes });
  return server.client(String(body.secret));
}

/** An error with the fields of OFREP. */
function expectOfrep(response: Answer, code: string, errorCode: string, key?: string): void {
  const { error } = expectError(response, code);
  const { key: shown, errorCode: given, errorDetails } = response.body;
  expect({ shown, given, errorDetails }).toEqual({
    shown: key as never,
    given: errorCode,
    errorDetails: error.message,
  });
}

function nested(levels: number): unknown {
  let value: unknown = "deep";
  for (let level = 1; level < levels; level += 1) value = { a: value };
  return value;
}

describe("POST /ofrep/v1/evaluate/flags/{key}", () => {
  const rows: readonly (readonly [context: object, value: unknown, variant: string, reason: string])[] = [
    [{}, false, "off", "DEFAULT"],
    [{ email: "Ada@ACME.com" }, true, "on", "TARGETING_MATCH"],
    [{ targetingKey: "user-1", plan: "pro", app: { version: "2.3.0" } }, false, "off", "SPLIT"],
    [{ targetingKey: "user-2", plan: "pro", app: { version: "2.10.1" } }, true, "on", "SPLIT"],
    [{ targetingKey: "用户", plan: "scale", "app.version": "v2.3" }, false, "off", "SPLIT"],
  ];
  test.each(rows)("%j: %p, %s, %s", async (context, value, variant, reason) => {
    const response = await browser.post(`${PATH}/new-checkout`, { context });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.body).toEqual({
      key: "new-checkout",
      value,
      variant,
      reason,
      metadata: { owner: "checkout", cost: 2 },
    });
  });

  test("without a value for the context, the caller uses its own default", async () => {
    const { body } = await browser.post(`${PATH}/theme`, { context: {} });
    expect(body).toEqual({ key: "theme", reason: "DISABLED", metadata: {} });
  });

  test.each([
    ["no body", undefined],
    ["no context", {}],
    ["null", { context: null }],
  ])("%s is the empty context", async (_name, body) => {
    const response = await browser.post(`${PATH}/plain`, body);
    expect(response.body).toMatchObject({ value: true, variant: "on", reason: "STATIC" });
  });

  test("costs a credit, also for a missing flag; an error is free of charge", async () => {
    const own = await server.account({ balance: 3 });
    await own.post("/v1/gate", { flag_key: "f", enabled: true });
    const balance = async () => (await own.get("/v1/meter/balance")).body.balance;
    await own.post(`${PATH}/f`, {});
    await own.post(`${PATH}/f`, { context: 1 });
    expect(await balance()).toBe(2);
    await own.post(`${PATH}/none`, {});
    await own.post(PATH, {});
    expect(await balance()).toBe(0);
    expectOfrep(await own.post(`${PATH}/f`, {}), "insufficient_balance", "GENERAL", "f");
    expectOfrep(await own.post(PATH, {}), "insufficient_balance", "GENERAL");
  });

  test("X-API-Key is accepted only here; Authorization takes precedence", async () => {
    const nobody = server.client(null);
    const headers = { "x-api-key": browser.key ?? "" };
    expect((await nobody.post(`${PATH}/plain`, {}, { headers })).status).toBe(200);
    expect((await nobody.post(PATH, {}, { headers })).status).toBe(200);
    const all = { "x-api-key": account.key ?? "" };
    expectError(await nobody.get("/v1/gate", { headers: all }), "unauthorized");
    expectError(await nobody.post(PATH, {}, { headers: { "x-api-key": "sm_x" } }), "unauthorized");
    const both = { headers: { ...headers, authorization: "Bearer sm_x" } };
    expectError(await nobody.post(`${PATH}/plain`, {}, both), "unauthorized");
  });

  test("an Idempotency-Key has no effect", async () => {
    const options = { headers: { "idempotency-key": "one" } };
    const first = await browser.post(`${PATH}/plain`, {}, options);
    const again = await browser.post(`${PATH}/plain`, {}, options);
    expect(again.headers.get("idempotent-replayed")).toBeNull();
    expect(again.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
  });
});

describe("POST /ofrep/v1/evaluate/flags", () => {
  test("all visible flags, sorted by key, with the event stream", async () => {
    const response = await browser.post(PATH, { context: { email: "ada@acme.com" } });
    expect(response.headers.get("cache-control")).toBe("no-store");
    const { flags, eventStreams } = response.body;
    expect((flags as { key: string }[]).map(({ key }) => key)).toEqual([
      ...["new-checkout", "off", "plain", "theme"],
    ]);
    expect((flags as object[])[0]).toMatchObject({ value: true, reason: "TARGETING_MATCH" });
    expect(eventStreams).toEqual([
      {
        type: "sse",
        endpoint: { requestUri: expect.stringMatching(/^\/ofrep\/v1\/events\?token=[\w-]{22}\.[\w-]{43}$/) },
        inactivityDelaySec: 120,
      },
    ]);
  });

  test("gate:read includes server-only flags", async () => {
    const reader = await keyWith(account, ["ofrep:read", "gate:read"]);
    expect((await reader.post(`${PATH}/secret`, {})).body).toMatchObject({ value: true });
    const { flags } = (await reader.post(PATH, {})).body;
    expect((flags as { key: string }[]).map(({ key }) => key)).toContain("secret");
  });

  test("an ETag of the bytes: 304 while nothing changes, also with weak tags and lists", async () => {
    const ask = (etag: string, context: object = {}) =>
      browser.post(PATH, { context }, { headers: { "if-none-match": etag } });
    const first = await browser.post(PATH, { context: {} });
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, `"x",W/${etag},"y"`, "*"]) {
      const response = await ask(known);
      expect({ status: response.status, text: response.text }).toEqual({ status: 304, text: "" });
      expect(response.headers.get("etag")).toBe(etag);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("content-type")).toBeNull();
    }
    for (const other of ['"x"', etag.slice(1, -1), `W/W/${etag}`, ""])
      expect((await ask(other)).status).toBe(200);
    // Another context has other values without a change of flags.
    const elsewhere = await ask(etag, { email: "ada@acme.com" });
    expect(elsewhere.status).toBe(200);
    expect(elsewhere.headers.get("etag")).not.toBe(etag);
    await account.post("/v1/gate", { flag_key: "off", enabled: true });
    expect((await ask(etag)).status).toBe(200);
    await account.post("/v1/gate", { flag_key: "off", enabled: false });
    expect((await ask(etag)).status).toBe(304);
  });

  test("a 304 costs a credit", async () => {
    const own = await server.account({ balance: 2 });
    const etag = (await own.post(PATH, {})).headers.get("etag") ?? "";
    expect((await own.post(PATH, {}, { headers: { "if-none-match": etag } })).status).toBe(304);
    expectError(await own.post(PATH, {}), "insufficient_balance");
  });

  test("query parameters of a refetch have no effect", async () => {
    const response = await browser.post(`${PATH}?flagConfigEtag=x&flagConfigLastModified=1`, {});
    expect(response.status).toBe(200);
  });

  test("another key has another stream and another ETag", async () => {
    const other = await keyWith(account, ["ofrep:read"]);
    const [one, two] = [await browser.post(PATH, {}), await other.post(PATH, {})];
    expect(one.body.flags).toEqual(two.body.flags);
    expect(one.headers.get("etag")).not.toBe(two.headers.get("etag"));
  });

  test("with public_url, streams have absolute URLs", async () => {
    const own = await startTestServer({ args: ["--public-url", "https://nf.example.com"] });
    try {
      const { eventStreams } = (await own.operator.post(PATH, {})).body;
      expect(eventStreams).toEqual([
        {
          type: "sse",
          url: expect.stringMatching(/^https:\/\/nf\.example\.com\/ofrep\/v1\/events\?token=/),
          inactivityDelaySec: 120,
        },
      ]);
    } finally {
      await own.stop();
    }
  });
});

describe("errors with the fields of OFREP", () => {
  const bodies: readonly (readonly [name: string, body: unknown, errorCode: string])[] = [
    ["no JSON", "{", "PARSE_ERROR"],
    ["a list", "[]", "PARSE_ERROR"],
    ["no UTF-8", new Uint8Array([0x22, 0xff]), "PARSE_ERROR"],
    ["a context that is no object", { context: "x" }, "INVALID_CONTEXT"],
    ["a context that is a list", { context: [] }, "INVALID_CONTEXT"],
    ["a targetingKey that is no text", { context: { targetingKey: 7 } }, "INVALID_CONTEXT"],
    ["a context one level too deep", { context: nested(CONTEXT_LEVELS_MAX + 2) }, "INVALID_CONTEXT"],
    [
      "a context of 10,000 levels",
      `{"context":${'{"a":'.repeat(9_999)}1${"}".repeat(10_000)}`,
      "INVALID_CONTEXT",
    ],
  ];
  test.each(bodies)("400 for %s", async (_name, body, errorCode) => {
    expectOfrep(await browser.post(`${PATH}/plain`, body), "validation_error", errorCode, "plain");
    expectOfrep(await browser.post(PATH, body), "validation_error", errorCode);
  });

  test(`a context of ${CONTEXT_LEVELS_MAX} levels`, async () => {
    const response = await browser.post(`${PATH}/plain`, { context: nested(CONTEXT_LEVELS_MAX + 1) });
    expect(response.status).toBe(200);
  });

  test.each(["none", "gone", "secret", "No%20Key", "config", "%E7%94%A8", "a%2Fb", "a%0Ab", "evaluate"])(
    "404 for %s",
    async (key) => {
      const response = await browser.post(`${PATH}/${key}`, {});
      const shown = decodeURIComponent(key).replace("\n", "?");
      expectOfrep(response, "gate.feature_not_found", "FLAG_NOT_FOUND", shown);
    },
  );

  test("a long key is truncated in the error", async () => {
    const response = await browser.post(`${PATH}/${"k".repeat(2_000)}?x=1`, {});
    expectOfrep(response, "gate.feature_not_found", "FLAG_NOT_FOUND", `${"k".repeat(100)}…`);
    expect(response.text.length).toBeLessThan(1_000);
  });

  test(`413 above ${CONTEXT_BODY.bytesMax} bytes`, async () => {
    const padded = (bytes: number) => JSON.stringify({ context: {} }).padEnd(bytes);
    expect((await browser.post(`${PATH}/plain`, padded(CONTEXT_BODY.bytesMax))).status).toBe(200);
    const response = await browser.post(`${PATH}/plain`, padded(CONTEXT_BODY.bytesMax + 1));
    expectOfrep(response, "request_too_large", "GENERAL", "plain");
  });

  test("401 and 403 are unchanged", async () => {
    const reader = await keyWith(account, ["gate:read"]);
    for (const path of [PATH, `${PATH}/plain`]) {
      for (const [client, code] of [
        [server.client(null), "unauthorized"],
        [reader, "forbidden"],
      ] as const) {
        const response = await client.post(path, {});
        expectError(response, code);
        expect(response.body).not.toHaveProperty("errorCode");
      }
    }
  });

  test("429 is unchanged, with Retry-After", async () => {
    const free = await server.account({ tier: "free" });
    let response = await free.post(PATH, {});
    while (response.status === 200) response = await free.post(PATH, {});
    expectError(response, "rate_limit_exceeded");
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(response.body).not.toHaveProperty("errorCode");
  });

  test("a browser's key cannot read rules or missing flags", async () => {
    expectError(await browser.get("/v1/gate/config"), "forbidden");
    expectError(await browser.get("/ofrep/v1/configuration"), "not_found");
    expectError(await browser.get(`${PATH}/plain`), "not_found");
  });

  test("500 for a bug, free of charge", async () => {
    const own = await startTestServer({ manualClock: true });
    try {
      const user = await own.account({ balance: 5 });
      await user.post("/v1/gate", { flag_key: "f", enabled: true, rules: [] });
      // No save could have stored this.
      own.server.kernel.db.execute("UPDATE flags SET definition = '{\"rules\": 7}'");
      await own.restart();
      const client = own.client(user.key);
      expectOfrep(await client.post(`${PATH}/f`, {}), "gate.evaluation_failed", "GENERAL", "f");
      expectOfrep(await client.post(PATH, {}), "gate.evaluation_failed", "GENERAL");
      expect((await client.get("/v1/meter/balance")).body.balance).toBe(5);
    } finally {
      await own.stop();
    }
  });
});

test("a targeting key of null counts as missing", async () => {
  for (const context of [{ targetingKey: null, plan: "pro" }, { plan: "pro" }]) {
    for (const path of [`${PATH}/new-checkout`, PATH]) {
      const { status, body } = await account.post(path, { context });
      expect(status).toBe(200);
      const found = path === PATH ? (body["flags"] as { key: string }[]) : [body];
      expect(found.find(({ key }) => key === "new-checkout")).toMatchObject({ key: "new-checkout" });
    }
  }
  const [withNull, without] = await Promise.all(
    [{ targetingKey: null }, {}].map((context) => account.post(PATH, { context })),
  );
  expect(withNull?.body["flags"]).toEqual(without?.body["flags"]);
});
