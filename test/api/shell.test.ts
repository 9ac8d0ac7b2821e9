import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createIds } from "../../src/kernel/ids.ts";
import { expectError, UUID_V7 } from "../support/errors.ts";
import { sendRaw } from "../support/raw-http.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** The error of the server's failing source of randomness: text that no caller may see. */
const DEFECT = "the generator in /src/kernel/ids.ts:21 is broken";
let broken = false;
let server: TestServer;

beforeAll(async () => {
  const ids = createIds(() => Date.now());
  const base62 = (length: number): string => {
    if (broken) throw new Error(DEFECT);
    return ids.base62(length);
  };
  server = await startTestServer({ manualClock: true, deps: { ids: { ...ids, base62 } } });
});
afterAll(() => server.stop());

describe("unknown routes", () => {
  test.each([
    ["GET", "/"],
    ["GET", "/index.html"],
    ["POST", "/signup"],
    ["GET", "/V1/ping"],
    ["GET", "/v2/ping"],
    ["GET", "/v1x"],
    ["DELETE", "/openapi.json"],
    ["POST", "/health"],
  ])("outside /v1 without a key: 404 %s %s", async (method, path) => {
    const { error } = expectError(await server.client(null).send(method, path), "not_found");
    expect(error.message).toStartWith(`There is no ${method} ${path}.`);
  });

  test.each([
    ["GET", "/v1"],
    ["GET", "/v1/"],
    ["GET", "/v1/nothing"],
    ["GET", "/v1/meters"],
    ["GET", "/v1/meter/a/b/balance"],
    ["GET", "/v1/meter//balance"],
    ["GET", "/v1/ping/"],
    ["GET", "/v1/meter/balance/"],
  ])("under /v1: 401 without a key, 404 with one: %s %s", async (method, path) => {
    const { error: missing } = expectError(await server.operator.send(method, path), "not_found");
    expect(missing.message).toStartWith(`There is no ${method} ${path}.`);
    const keyless = await server.client(null).send(method, path);
    const { error } = expectError(keyless, "unauthorized");
    expect(error.message).toBe(
      `${missing.message} No key was sent. Send one as \`Authorization: Bearer sm_…\`.`,
    );
    expect(keyless.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("a short Host header does not change the path", async () => {
    const answer = await sendRaw(server.url, ["GET /abc/v1/ping HTTP/1.1\r\nHost: x\r\n\r\n"]);
    expect(answer?.status).toBe(404);
  });

  test("a long path is cut in the error", async () => {
    const { error } = expectError(await server.client(null).get(`/${"x".repeat(4000)}`), "not_found");
    expect(error.message.length).toBeLessThan(200);
  });
});

describe("known paths with other methods", () => {
  test.each([
    ["POST", "/v1/meter/balance"],
    ["DELETE", "/v1/meter/balance"],
    ["GET", "/v1/meter/deduct"],
    ["PUT", "/v1/meter/customer-1/reset"],
    ["PATCH", "/v1/admin/accounts"],
    ["HEAD", "/v1/keys/rotate"],
    ["OPTIONS", "/v1/meter/balance"],
    ["PROPFIND", "/v1/meter/balance"],
  ])("404 %s %s", async (method, path) => {
    const lines = [`${method} ${path} HTTP/1.1`, "Host: test", `Authorization: Bearer ${server.key}`];
    const answer = await sendRaw(server.url, [`${lines.join("\r\n")}\r\n\r\n`]);
    expect(answer?.status).toBe(404);
    expect(answer?.headers.get("x-request-id")).toMatch(UUID_V7);
    if (method !== "HEAD") expect(answer?.body.code).toBe("not_found");
  });
});

describe("HEAD", () => {
  test.each(["/v1/ping", "/v1/meter/balance", "/v1/meter/history", "/v1/admin/accounts", "/openapi.json"])(
    "%s responds like GET, without a body",
    async (path) => {
      const uncompressed = { headers: { "accept-encoding": "identity" } };
      const got = await server.operator.send("GET", path, undefined, uncompressed);
      const head = await server.operator.send("HEAD", path, undefined, uncompressed);
      expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: "" });
      expect(head.headers.get("content-type")).toBe("application/json");
      expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(got.text)));
      expect(head.headers.get("x-request-id")).toMatch(UUID_V7);
    },
  );

  test("401 without a key, 400 for a bad query", async () => {
    expect((await server.client(null).send("HEAD", "/v1/meter/balance")).status).toBe(401);
    expect((await server.operator.send("HEAD", "/v1/meter/history?limit=0")).status).toBe(400);
  });
});

describe("X-Request-Id", () => {
  test("is a new UUIDv7 on every response, whatever its status", async () => {
    const { operator } = server;
    const key = { headers: { "idempotency-key": "request-ids" } };
    const account = await server.account({ tier: "free", balance: 0 });
    const answers = [
      await operator.get("/v1/ping"),
      await operator.get("/openapi.json"),
      await operator.get("/v1/meter/balance"),
      await operator.get("/nowhere"),
      await operator.get("/v1/nowhere"),
      await server.client(null).get("/v1/meter/balance"),
      await account.get("/v1/admin/accounts"),
      await account.post("/v1/meter/m/refill", { amount: 1 }),
      await operator.post("/v1/meter/m/refill", { amount: 0 }),
      await operator.post("/v1/meter/m/refill", "x".repeat(1024 * 1024 + 1)),
      await operator.post("/v1/meter/m/refill", { amount: 1 }, key),
      await operator.post("/v1/meter/m/refill", { amount: 1 }, key),
      await operator.post("/v1/meter/m/refill", { amount: 2 }, key),
    ];
    await Promise.all(Array.from({ length: 60 }, () => account.get("/v1/meter/balance")));
    answers.push(await account.get("/v1/meter/balance"));
    expect(answers.map(({ status }) => status)).toEqual([
      200, 200, 200, 404, 404, 401, 403, 402, 400, 413, 200, 200, 409, 429,
    ]);
    const ids = answers.map(({ headers }) => headers.get("x-request-id") ?? "none");
    for (const id of ids) expect(id).toMatch(UUID_V7);
    expect(new Set(ids).size).toBe(answers.length);
  });

  test("ignores one that the caller sends", async () => {
    const own = "019cd79e-4600-72c4-a4c7-1699cbd1c0e9";
    const answer = await server.operator.get("/v1/ping", { headers: { "x-request-id": own } });
    expect(answer.headers.get("x-request-id")).not.toBe(own);
  });
});

describe("500: a bug in the server", () => {
  test("shows no details to the caller, rolls back everything, and logs all details", async () => {
    const email = "defect@example.com";
    broken = true;
    const answer = await server.operator.post("/v1/admin/accounts", { email, tier: "free" });
    broken = false;
    expectError(answer, "internal_error");
    expect(answer.text).not.toContain("generator");
    expect(answer.text).not.toContain("ids.ts");
    const line = server.logs.find(({ message }) => message === "a request failed");
    expect(line).toMatchObject({
      level: "error",
      fields: { request_id: answer.headers.get("x-request-id"), error: `Error: ${DEFECT}` },
    });
    const again = await server.operator.post("/v1/admin/accounts", { email, tier: "free" });
    expect(again.status).toBe(201);
  });

  test("503 while nothing can be written: reads continue, nothing changes, and writes work again afterwards", async () => {
    const { db } = server.server.kernel;
    const account = await server.account({ balance: 5 });
    db.execute("PRAGMA query_only = ON");
    const refused = await account.post("/v1/meter/m/refill", { amount: 3 });
    const read = await account.get("/v1/meter/m/balance");
    db.execute("PRAGMA query_only = OFF");
    expectError(refused, "read_only");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(read.body.balance).toBe(0);
    expect((await account.post("/v1/meter/m/refill", { amount: 3 })).body.balance).toBe(3);
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(4);
  });
});

test("responses are flat JSON objects of the type application/json", async () => {
  const answer = await server.operator.get("/v1/ping");
  expect(answer.text).toBe('{"pong":true}');
  expect(answer.headers.get("content-type")).toBe("application/json");
});
