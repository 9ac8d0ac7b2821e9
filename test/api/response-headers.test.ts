import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Answer, Client } from "../support/client.ts";
import { bodyOf, isForKeys, makeResource, parametersOf, pathOf, segmentOf } from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    manualClock: true,
    args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8"],
  });
});
afterAll(() => server.stop());

const nosniff = ({ headers }: Answer): string | null => headers.get("x-content-type-options");
const caching = ({ headers }: Answer): string | null => headers.get("cache-control");

test("every response has nosniff, on each route, for errors, and on unknown paths", async () => {
  const account = await server.account();
  const { routes } = server.server.app.http;
  for (const { path, operation, ...route } of routes) {
    // A stream would not end.
    const method = operation.responseTypes?.includes("text/event-stream") ? "HEAD" : route.method;
    for (const client of [account, server.client(null)]) {
      const answer = await client.send(method, path.replace(/:[A-Za-z_]+/g, "none"), undefined);
      expect({ method, path, header: nosniff(answer) }).toEqual({ method, path, header: "nosniff" });
    }
  }
  for (const path of [
    "/",
    "/docs",
    "/docs/page.css",
    "/nowhere",
    "/v1/nowhere",
    "/healthz",
    "/openapi.json",
  ]) {
    expect(nosniff(await account.get(path))).toBe("nosniff");
    expect(nosniff(await account.send("HEAD", path))).toBe("nosniff");
    expect(nosniff(await account.send("OPTIONS", path))).toBe("nosniff");
  }
});

test("a response with a secret and its repeat are not cached", async () => {
  const secrets = server.server.app.http.routes.filter(
    ({ operation }) => operation.secret && !operation.byPortal,
  );
  expect(secrets.map(({ path }) => path).sort()).toEqual([
    "/v1/admin/accounts",
    "/v1/admin/accounts/:user_id/reset-key",
    "/v1/admin/login-links",
    "/v1/keys",
    "/v1/keys/:id/rotate",
    "/v1/keys/rotate",
    "/v1/people",
    "/v1/people/:person_id/invitation",
    "/v1/projects/:id/keys",
    "/v1/pulse/ping-key",
    "/v1/pulse/probes",
    "/v1/relay/endpoints",
    "/v1/relay/endpoints/:endpoint_id/secret/rotate",
    "/v1/relay/portal",
    "/v1/relay/secret",
    "/v1/relay/secret/rotate",
    "/v1/session",
    "/v1/session/account",
    "/v1/session/invitation",
    "/v1/session/invitation/accept",
    "/v1/session/passkey",
    "/v1/signup",
  ]);
  for (const route of secrets) {
    const { access } = route.operation;
    const account = await server.account();
    const caller: Client = access === "operator" ? server.operator : account;
    const hasParameters = parametersOf(route).length > 0;
    const named =
      access === "operator"
        ? { user_id: account.userId }
        : hasParameters
          ? await makeResource(segmentOf(route), account)
          : {};
    const headers = { "idempotency-key": route.operation.name };
    for (const isRepeat of [false, access !== "public"]) {
      const answer = await caller.send("POST", pathOf(route, named), bodyOf(route), { headers });
      const ok = answer.status < 300 || access === "public";
      expect({ path: route.path, ok, body: answer.text }).toMatchObject({ ok: true });
      expect(answer.headers.get("idempotent-replayed")).toBe(isRepeat ? "true" : null);
      expect({ path: route.path, caching: caching(answer) }).toMatchObject({ caching: "no-store" });
    }
  }
});

test("responses do not share their own headers", async () => {
  const account = await server.account();
  const plain = () => account.get("/v1/meter/balance");
  const names = async () => [...(await plain()).headers.keys()].filter((name) => name !== "date").sort();
  const usual = await names();
  expect(usual).toContain("content-type");
  const bucket = await account.post("/v1/catch/buckets", { target_url: "https://example.com/" });
  const makers = [
    () => account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] }),
    () => account.send("DELETE", `/v1/catch/buckets/${bucket.body["id"]}`),
    () => account.send("POST", "/v1/meter/m/refill", { amount: 1 }, { headers: { "idempotency-key": "k" } }),
    () => account.send("POST", "/v1/meter/m/refill", { amount: 1 }, { headers: { "idempotency-key": "k" } }),
    () => server.client(null).get("/v1/meter/balance"),
  ];
  const statuses: number[] = [];
  for (const make of makers) {
    statuses.push((await make()).status);
    expect(await names()).toEqual(usual);
  }
  expect(statuses).toEqual([201, 204, 200, 200, 401]);
  const ids = await Promise.all(
    Array.from({ length: 50 }, async () => (await plain()).headers.get("x-request-id")),
  );
  expect(new Set(ids).size).toBe(50);
});

test("no response to a request with a key is stored by a shared cache, whatever its status", async () => {
  const account = await server.account();
  const { routes } = server.server.app.http;
  const keyed = routes.filter(isForKeys);
  for (const { path, operation, ...route } of keyed) {
    const method = operation.responseTypes?.includes("text/event-stream") ? "HEAD" : route.method;
    for (const client of [account, server.client(null)]) {
      const answer = await client.send(method, path.replace(/:[A-Za-z_]+/g, "none"), undefined);
      expect({ method, path, caching: caching(answer) }).toEqual({
        method,
        path,
        caching: expect.stringMatching(
          answer.headers.has("etag") ? /no-store|private, no-cache/ : /^no-store$/,
        ),
      });
    }
  }
});
