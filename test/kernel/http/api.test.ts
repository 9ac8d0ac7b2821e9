import { afterAll, beforeAll, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { Api, routesOf } from "../../../src/kernel/http/api.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

test("endpoints are listed in their order, with prefix and part, also those of a plugin within a plugin", () => {
  const api = new Api(server.server.app.http);
  const any = api.endpoint({ name: "test.any", access: "any", summary: "Anything" }, () => ({}));
  const inner = new Elysia({ prefix: "/in", tags: ["Inner"] }).put("/a", any);
  const outer = new Elysia({ prefix: "/v1/out", tags: ["Outer"] })
    .get("/b", any)
    .use(inner)
    .patch("/c", any)
    .delete("", any);
  expect(routesOf(outer).map(({ method, path, tag }) => [method, path, tag])).toEqual([
    ["GET", "/v1/out/b", "Outer"],
    ["PUT", "/v1/out/in/a", "Inner"],
    ["PATCH", "/v1/out/c", "Outer"],
    ["DELETE", "/v1/out", "Outer"],
  ]);
});

test("a route whose handler is no endpoint is rejected", () => {
  expect(() => routesOf(new Elysia().get("/a", () => "a"))).toThrow("GET /a is not an endpoint of the API");
});
