import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { JSON_VALUES_MAX } from "../../src/json-text.ts";
import { expectError } from "../support/errors.ts";
import { makeResource, parametersOf, pathOf, segmentOf } from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());

/** A body with `count` values: the object, the list in it, and its numbers. */
function bodyOfValues(count: number): string {
  return `{"other":[${Array(count - 2)
    .fill(1)
    .join()}]}`;
}

// As the documentation says.
const TOO_MANY = { body: ["has more than 50000 values"] };

describe("values of a body", () => {
  test("above the limit are rejected on every route with JSON of that size", async () => {
    const account = await server.account();
    const body = bodyOfValues(JSON_VALUES_MAX + 1);
    const routes = server.server.app.http.routes.filter(
      ({ body: schema, operation }) => schema !== undefined && operation.bodyLimits.bytesMax >= body.length,
    );
    expect(routes.length).toBeGreaterThan(10);
    for (const route of routes) {
      const named = parametersOf(route).length > 0 ? await makeResource(segmentOf(route), account) : {};
      const { fields } = expectError(
        await account.send(route.method, pathOf(route, named), body),
        "validation_error",
      );
      expect({ path: route.path, fields }).toEqual({ path: route.path, fields: TOO_MANY });
    }
  });

  test("are accepted up to the limit and counted before parsing", async () => {
    const account = await server.account();
    const post = (body: string) => account.post("/v1/gate", body);
    const most = expectError(await post(bodyOfValues(JSON_VALUES_MAX)), "validation_error");
    expect(most.fields).not.toEqual(TOO_MANY);
    const { fields } = expectError(await post(`${"1,".repeat(JSON_VALUES_MAX)} no JSON`), "validation_error");
    expect(fields).toEqual(TOO_MANY);
  });
});
