import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BODY_BYTES_MAX } from "../../src/kernel/http/operation.ts";
import { checksum } from "../../src/kernel/secrets/key-format.ts";
import type { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Requests that the tier `free` allows in a burst. */
const FREE_REQUESTS = 60;
const DEDUCT = "/v1/meter/customer-1/deduct";
const TOO_LARGE = "x".repeat(BODY_BYTES_MAX + 1);

async function emptyBucket(client: Client): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: FREE_REQUESTS }, () => client.get("/v1/meter/balance")),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(FREE_REQUESTS).fill(200));
}

function suspend(userId: string): Promise<unknown> {
  return server.operator.patch(`/v1/admin/accounts/${userId}`, { suspended: true });
}

describe("the order of the gates", () => {
  // Each row also violates everything that later gates check.
  test.each([
    ["401 before 404", "GET", "/v1/no-such-thing", undefined],
    ["401 before 404: the root of the version", "GET", "/v1", undefined],
    ["401 before 404: another method", "PUT", "/v1/meter/balance", undefined],
    ["401 before 403", "GET", "/v1/admin/accounts", undefined],
    ["401 before 400", "POST", DEDUCT, "not JSON"],
    ["401 before 413", "POST", DEDUCT, TOO_LARGE],
  ])("%s", async (_, method, path, body) => {
    expectError(await server.client(null).send(method, path, body), "unauthorized");
  });

  test("404 before 403: a suspended account requests an unknown route", async () => {
    const account = await server.account();
    await suspend(account.userId);
    expectError(await account.get("/v1/no-such-thing"), "not_found");
    expectError(await account.put("/v1/meter/balance"), "not_found");
  });

  test("404 before 429: unknown routes take no token and need none", async () => {
    const account = await server.account({ tier: "free" });
    for (let count = 0; count < 5; count += 1) {
      expectError(await account.get("/v1/no-such-thing"), "not_found");
    }
    await emptyBucket(account);
    expectError(await account.get("/v1/no-such-thing"), "not_found");
    expectError(await account.get("/v1/meter/balance"), "rate_limit_exceeded");
  });

  test("403 before 429: a suspended account with an empty bucket", async () => {
    const account = await server.account({ tier: "free" });
    await emptyBucket(account);
    await suspend(account.userId);
    expectError(await account.get("/v1/meter/balance"), "forbidden");
  });

  test("403 before 400 and 413: another account's key on the operator's endpoints", async () => {
    const account = await server.account();
    expectError(await account.post("/v1/admin/accounts", "not JSON"), "forbidden");
    expectError(await account.post("/v1/admin/accounts", TOO_LARGE), "forbidden");
  });

  test("403 takes no token", async () => {
    const account = await server.account({ tier: "free" });
    for (let count = 0; count < 5; count += 1) {
      expectError(await account.get("/v1/admin/accounts"), "forbidden");
    }
    await emptyBucket(account);
  });

  test("429 before 400 and 413", async () => {
    const account = await server.account({ tier: "free" });
    await emptyBucket(account);
    expectError(await account.post(DEDUCT, "not JSON"), "rate_limit_exceeded");
    expectError(await account.post(DEDUCT, TOO_LARGE), "rate_limit_exceeded");
    expectError(await account.post("/v1/meter/a.b/deduct", {}), "rate_limit_exceeded");
  });

  test("400 before 402: a broken body with an empty balance", async () => {
    const account = await server.account({ balance: 0 });
    expectError(await account.post(DEDUCT, {}), "validation_error");
    expectError(await account.post("/v1/meter/a.b/deduct", { amount: 1 }), "validation_error");
    expectError(await account.post(DEDUCT, { amount: 1 }), "insufficient_balance");
  });

  test("413 before 402", async () => {
    const account = await server.account({ balance: 0 });
    expectError(await account.post(DEDUCT, TOO_LARGE), "request_too_large");
  });

  test("a rejection by a gate is free of charge; a 400 takes a token", async () => {
    const account = await server.account({ tier: "free", balance: 10 });
    await account.post(DEDUCT, "not JSON");
    await account.post(DEDUCT, TOO_LARGE);
    await account.get("/v1/admin/accounts");
    expect((await account.get("/v1/meter/balance")).body.balance).toBe(10);
    const left = FREE_REQUESTS - 3;
    const answers = await Promise.all(
      Array.from({ length: left + 1 }, () => account.get("/v1/meter/balance")),
    );
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  });
});

describe("401: invalid keys", () => {
  const body = `sm_${"a".repeat(43)}`;
  const wellFormed = `${body}_${checksum(body)}`;
  const short = `sm_${"a".repeat(42)}`;
  const foreign = `xx_${"a".repeat(43)}`;
  test.each([
    ["no key", null],
    ["an empty header", ""],
    ["the scheme alone", "Bearer"],
    ["the scheme and a space", "Bearer "],
    ["another scheme", `Basic ${btoa("user:password")}`],
    ["the key without a scheme", wellFormed],
    ["a well-formed key that nobody has", `Bearer ${wellFormed}`],
    ["a wrong checksum", `Bearer ${body}_00000000`],
    ["a checksum in capitals", `Bearer ${body}_${checksum(body).toUpperCase()}`],
    ["one character too few", `Bearer ${short}_${checksum(short)}`],
    ["another prefix", `Bearer ${foreign}_${checksum(foreign)}`],
    ["two keys", `Bearer ${wellFormed} ${wellFormed}`],
    ["a very long text", `Bearer sm_${"a".repeat(5000)}_00000000`],
  ])("%s", async (_, authorization) => {
    const headers: Record<string, string> = authorization === null ? {} : { authorization };
    const answer = await server.client(null).get("/v1/meter/balance", { headers });
    expectError(answer, "unauthorized");
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(answer.text).not.toContain("aaaaaaaa");
  });

  test("the 401 for a managed key of another prefix names the keys that work", async () => {
    const created = await server.operator.post("/v1/keys", {
      prefix: "acme",
      name: "Acme",
      scopes: ["a:read"],
    });
    const { error } = expectError(
      await server.client(String(created.body["secret"])).get("/v1/meter/balance"),
      "unauthorized",
    );
    expect(error.message).toBe(
      "This key begins with acme_, but this API accepts keys that begin with sm_. Use the platform key, or a managed key with the prefix sm.",
    );
  });

  test("the scheme is case-insensitive and spaces around the key are ignored", async () => {
    for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer "]) {
      const headers = { authorization: `${scheme} ${server.key}` };
      expect((await server.client(null).get("/v1/meter/balance", { headers })).status).toBe(200);
    }
  });
});
