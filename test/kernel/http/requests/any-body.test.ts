import { afterAll, beforeAll, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { Api } from "../../../../src/kernel/http/api.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

test.each([
  "application/json",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "text/plain",
])("a handler gets the bytes of any body, also if it declares the body: %s", async (contentType) => {
  const { http } = server.server.app;
  const counted = new Api(http).open(
    {
      name: "test.any",
      summary: "Count bytes",
      anyBody: "Anything.",
      response: Type.Object({ bytes: Type.Integer(), parsed: Type.Boolean() }),
    },
    async ({ call, body }) => ({
      bytes: (await call.readBytes()).length,
      parsed: Object.keys(body).length > 0,
    }),
  );
  const alone = new Elysia().post("/counted", counted.admitted);
  const headers = { "content-type": contentType, "content-length": "5" };
  const request = new Request("http://localhost/counted", { method: "POST", headers, body: '{"a":' });
  const response = await alone.handle(request);
  expect([response.status, await response.text()]).toEqual([200, '{"bytes":5,"parsed":false}']);
});
