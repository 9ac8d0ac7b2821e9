import { afterAll, beforeAll, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { api, mounted, Routes } from "../../../src/kernel/http/api.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const op = { name: "test.any", access: "any", summary: "Anything" } as const;

test("routes are collected in their order, with prefix and part, also those of another plugin", () => {
  const inner = new Routes({ prefix: "/in", tags: ["Inner"] }).use(api).put("/a", () => ({}), { op });
  const outer = new Routes({ prefix: "/v1/out", tags: ["Outer"] })
    .use(api)
    .get("/b", () => ({}), { op })
    .use(inner)
    .patch("/c", () => ({}), { op })
    .delete("", () => ({}), { op });
  const routes = mounted(outer, server.server.app.http.deps);
  expect(routes.map(({ method, path, tag }) => [method, path, tag])).toEqual([
    ["GET", "/v1/out/b", "Outer"],
    ["PUT", "/v1/out/in/a", "Inner"],
    ["PATCH", "/v1/out/c", "Outer"],
    ["DELETE", "/v1/out", "Outer"],
  ]);
});

test("a plugin of Elysia itself, and a route without an operation, are no routes", () => {
  const { deps } = server.server.app.http;
  expect(() => mounted(new Elysia().get("/a", "a"), deps)).toThrow(
    "an area's routes are collected by Routes",
  );
  const nameless = new Routes().use(api).get("/a", () => ({}), {});
  expect(() => mounted(nameless, deps)).toThrow("GET /a does not say what operation it is");
});
