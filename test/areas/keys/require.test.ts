import { beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, useTestServer } from "../../support/server.ts";
import { check } from "../check/support.ts";
import { makeKey } from "./support.ts";

const server = useTestServer({ manualClock: true });
let account: AccountClient;
let secret: string;
beforeEach(async () => {
  account = await server.account();
  ({ secret } = await makeKey(account, { scopes: ["orders:*", "reports.read"] }));
});

const verify = async (require: unknown) =>
  (await account.post("/v1/keys/verify", { secret, require })).body["error"];
const rejected = async (require: unknown) =>
  expectError(await account.post("/v1/keys/verify", { secret, require }), "validation_error").fields ?? {};

/** `levels` objects within each other, around a text. */
function nested(levels: number): unknown {
  let requirement: unknown = "orders:read";
  for (let level = 0; level < levels; level += 1)
    requirement = level % 2 ? { or: [requirement] } : { and: [requirement] };
  return requirement;
}

test.each([
  // resource:action, as this API has it; resource.action, as Unkey has it; paths.
  ["orders:*", "orders:items:read"],
  ["documents.*", "documents.drafts.read"],
  ["v1/reports/*", "v1/reports/7"],
  ["*", "anything at all"],
  ["documents.read", "documents.read"],
])("%s of a scope or a permission holds %s, in each form of require", async (held, text) => {
  await account.put("/v1/keys/roles/other", { permissions: ["x"] });
  for (const terms of [{ scopes: [held] }, { permissions: [held], roles: ["other"] }]) {
    const key = await makeKey(account, terms);
    // `a`, `a AND x`, `a OR b`, `a AND (b OR a)` and `(a AND a) OR b` of a query language.
    for (const require of [
      [text],
      { and: [text] },
      { or: ["b", text] },
      { and: [text, { or: ["b", text] }] },
      { or: [{ and: [text, text] }, "b"] },
    ])
      expect((await account.post("/v1/keys/verify", { secret: key.secret, require })).body).toMatchObject({
        valid: true,
      });
    const without = { secret: key.secret, require: { and: [text, "b"] } };
    expect((await account.post("/v1/keys/verify", without)).body["valid"]).toBe(held === "*");
  }
});

describe("require with and, or", () => {
  test.each([
    [{ and: ["orders:read", "reports.read"] }, null],
    [{ and: ["orders:read", "reports.write"] }, "insufficient_permission"],
    [{ or: ["reports.write", "orders:write"] }, null],
    [{ or: ["reports.write", "users"] }, "insufficient_permission"],
    [{ and: ["orders:read", { or: ["users", "reports.read"] }] }, null],
    [{ or: [{ and: ["orders:read", "users"] }, { and: ["users"] }] }, "insufficient_permission"],
    [["orders:read", "reports.read"], null],
    [["users"], "insufficient_scope"],
  ])("%j: %p", async (require, error) => {
    expect(await verify(require)).toBe(error as never);
  });

  test("4 levels and 50 texts are accepted, more are rejected", async () => {
    const texts = Array.from({ length: 50 }, (_, index) => `orders:${index}`);
    expect(await verify(nested(4))).toBe(null);
    expect(await verify({ and: texts })).toBe(null);
    expect(Object.keys(await rejected(nested(5)))).toEqual(["require.and.0.or.0.and.0.or.0"]);
    expect(Object.keys(await rejected({ and: [...texts, "one"] }))).toEqual(["require"]);
    expect(Object.keys(await rejected({ or: [{ and: texts }, "one"] }))).toEqual(["require"]);
  });

  test.each([
    [{}, "require"],
    [{ and: ["a"], or: ["b"] }, "require"],
    [{ and: ["a"], not: "b" }, "require"],
    [{ and: [] }, "require"],
    [{ and: "a" }, "require"],
    [{ and: [7] }, "require.and.0"],
    [{ and: [""] }, "require.and.0"],
    [{ or: ["a".repeat(256)] }, "require.or.0"],
    [{ or: [{ and: [] }] }, "require.or.0.and"],
    [{ or: [["a"]] }, "require.or.0"],
    [7, "require"],
  ])("%j is a 400 about %s", async (require, field) => {
    expect(Object.keys(await rejected(require))).toEqual([field]);
  });

  test("a rejection is counted in the key's usage", async () => {
    const created = await makeKey(account, { scopes: ["a"] });
    await account.post("/v1/keys/verify", { secret: created.secret, require: { or: ["b"] } });
    const { data } = (await account.get(`/v1/keys/${created.id}/usage`)).body as { data: object[] };
    expect(data).toMatchObject([{ errors: { insufficient_permission: 1 } }]);
  });
});

test("in a check it is 403, and a proxy sends it as JSON", async () => {
  const require = { or: ["users", "admin"] };
  expect(await check(account, { secret, require })).toMatchObject({
    code: "insufficient_permission",
    status: 403,
  });
  const through = (requirement: string) =>
    server
      .client(secret)
      .send("GET", `/v1/check/http?require=${encodeURIComponent(requirement)}`, undefined, {
        headers: { "x-ninefold-key": account.key ?? "" },
      });
  expectError(await through(JSON.stringify(require)), "insufficient_permission");
  expect((await through('{"or":["users","orders:read"]}')).status).toBe(200);
  expectError(await through("{or"), "service_unavailable");
});
