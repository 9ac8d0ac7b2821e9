import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FormatRegistry } from "@sinclair/typebox";
import { INPUT_FORMATS } from "../../src/kernel/data/schema.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { BODY_BYTES_MAX } from "../../src/kernel/http/operation.ts";
import { expectError } from "../support/errors.ts";
import { isForKeys } from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let routes: readonly DeclaredRoute[];
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  routes = server.server.app.http.routes;
});
afterAll(() => server.stop());

/** Routes that need a key, of every area, including future ones. */
function keyed(): DeclaredRoute[] {
  const found = routes.filter(isForKeys);
  expect(found.length).toBeGreaterThan(10);
  return found;
}

/** Keyed routes at which an `Idempotency-Key` is honoured. */
function changing(): DeclaredRoute[] {
  return keyed().filter(({ method, operation }) => method !== "GET" && operation.idempotent);
}

/** A path that fits the route. Its resources do not exist: the gates run before any lookup. */
function pathOf({ path }: DeclaredRoute): string {
  return path.replace(/:[A-Za-z_]+/g, "none");
}

/** The tier unlimited has no bucket, and its accounts may call the operator's endpoints too. */
const tierFor = ({ operation }: DeclaredRoute): string =>
  operation.access === "operator" ? "unlimited" : "scale";

/** The formats that a schema names, at any depth. */
function formatsOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key === "examples" || key === "default") return [];
    return key === "format" && typeof value === "string" ? value : formatsOf(value);
  });
}

test("the formats of every input are checked, whether Elysia is loaded or not", () => {
  const named = routes.flatMap(({ params, query, body }) => [params, query, body].flatMap(formatsOf));
  expect(new Set(named)).toEqual(new Set(Object.keys(INPUT_FORMATS)));
  for (const [format, fits] of Object.entries(INPUT_FORMATS)) expect(FormatRegistry.Get(format)).toBe(fits);
});

describe("every route that requires a key", () => {
  test("401 without one", async () => {
    for (const route of keyed()) {
      expectError(await server.client(null).send(route.method, pathOf(route)), "unauthorized");
    }
  });

  test("403 for a suspended account, with an Idempotency-Key and without", async () => {
    const suspended = {
      scale: await server.account(),
      unlimited: await server.account({ tier: "unlimited" }),
    };
    for (const { userId } of Object.values(suspended)) {
      await server.operator.patch(`/v1/admin/accounts/${userId}`, { suspended: true });
    }
    for (const [index, route] of keyed().entries()) {
      const account = suspended[tierFor(route) as keyof typeof suspended];
      const headers = { "idempotency-key": `403-${index}` };
      const answer = await account.send(route.method, pathOf(route));
      const { error } = expectError(answer, "forbidden");
      expect(error.message).toBe("This account is suspended.");
      expectError(await account.send(route.method, pathOf(route), undefined, { headers }), "forbidden");
    }
  });

  test("403 at the operator's endpoints for everyone else", async () => {
    const account = await server.account();
    const operators = keyed().filter(({ operation }) => operation.access === "operator");
    expect(operators.map(({ path }) => path)).toContain("/v1/admin/accounts");
    for (const route of operators) {
      expectError(await account.send(route.method, pathOf(route)), "forbidden");
    }
  });

  test("429 with an empty bucket, with an Idempotency-Key and without", async () => {
    const account = await server.account({ tier: "free" });
    await Promise.all(Array.from({ length: 60 }, () => account.get("/v1/meter/balance")));
    for (const route of keyed()) {
      const { limit, access } = route.operation;
      if (limit !== "general" || access === "operator") continue;
      for (const headers of [{}, { "idempotency-key": "429" }]) {
        const answer = await account.send(route.method, pathOf(route), undefined, { headers });
        expectError(answer, "rate_limit_exceeded");
        expect(answer.headers.get("retry-after")).toBe("1");
      }
    }
  });

  test("429 with an empty bucket of the monitor endpoints", async () => {
    const account = await server.account({ tier: "free" });
    const monitors = keyed().filter(({ operation }) => operation.limit === "monitor");
    for (const [index, route] of monitors.entries()) {
      if (index === 0) {
        const first = Array.from({ length: 15 }, () => account.send(route.method, pathOf(route)));
        for (const answer of await Promise.all(first)) expect(answer.status).not.toBe(429);
      }
      expectError(await account.send(route.method, pathOf(route)), "rate_limit_exceeded");
    }
    expect((await account.get("/v1/meter/balance")).status).toBe(200);
  });
});

describe("every change", () => {
  test("400 for an invalid Idempotency-Key, without a charge", async () => {
    const accounts = {
      scale: await server.account({ balance: 9 }),
      unlimited: await server.account({ tier: "unlimited" }),
    };
    const headers = { "idempotency-key": "k".repeat(256) };
    for (const route of changing()) {
      const account = accounts[tierFor(route) as keyof typeof accounts];
      const answer = await account.send(route.method, pathOf(route), "{}", { headers });
      expectError(answer, "validation_error");
    }
    expect((await accounts.scale.get("/v1/meter/balance")).body.balance).toBe(9);
  });

  test("413 for a body that is too large", async () => {
    const accounts = {
      scale: await server.account({ balance: 9 }),
      unlimited: await server.account({ tier: "unlimited" }),
    };
    const headers = { "idempotency-key": "large" };
    for (const route of changing()) {
      const account = accounts[tierFor(route) as keyof typeof accounts];
      const large = "x".repeat(BODY_BYTES_MAX + 1);
      expectError(await account.send(route.method, pathOf(route), large, { headers }), "request_too_large");
      if (route.body === undefined) continue;
      expectError(await account.send(route.method, pathOf(route), large), "request_too_large");
    }
    expect((await accounts.scale.get("/v1/meter/balance")).body.balance).toBe(9);
  });

  test("400 for a body that is not a JSON object, then 409 for another body with the same key", async () => {
    const accounts = {
      scale: await server.account({ balance: 9 }),
      unlimited: await server.account({ tier: "unlimited" }),
    };
    for (const [index, route] of changing().entries()) {
      if (route.body === undefined) continue;
      const account = accounts[tierFor(route) as keyof typeof accounts];
      const headers = { "idempotency-key": `body-${index}` };
      const answer = await account.send(route.method, pathOf(route), "[1]", { headers });
      expectError(answer, "validation_error");
      expectError(await account.send(route.method, pathOf(route), "[2]", { headers }), "conflict");
    }
    expect((await accounts.scale.get("/v1/meter/balance")).body.balance).toBe(9);
  });

  test("402 with an empty balance if it costs credits, without an effect", async () => {
    const account = await server.account({ balance: 0 });
    const priced = routes.filter(({ path, params, operation }) => {
      const withoutParameters = !path.includes(":") || params?.properties.meterId !== undefined;
      return operation.cost > 0 && withoutParameters;
    });
    expect(priced.map(({ operation }) => operation.name)).toContain("meter.deduct");
    for (const route of priced) {
      if (!isForKeys(route)) continue;
      const answer = await account.send(route.method, pathOf(route), route.operation.example);
      expectError(answer, "insufficient_balance");
      expect(answer.body).toMatchObject({ balance: 0, user_id: account.userId });
    }
  });
});
