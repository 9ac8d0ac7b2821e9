import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { ApiError } from "../../../../src/kernel/errors.ts";
import {
  compileValidator,
  FIELD_ERRORS_MAX,
  inputChecks,
} from "../../../../src/kernel/http/requests/validate.ts";
import { thrown } from "../../support.ts";

const check = compileValidator(
  Type.Object({
    name: Type.String({ minLength: 1, maxLength: 5, errorMessage: "must have 1 to 5 characters" }),
    amount: Type.Integer(),
    tags: Type.Optional(Type.Array(Type.String())),
    nested: Type.Optional(Type.Object({ deep: Type.Boolean() })),
  }),
);

function refusal(run: () => unknown): ApiError {
  const error = thrown(run);
  expect(error).toBeInstanceOf(ApiError);
  expect((error as ApiError).code).toBe("validation_error");
  return error as ApiError;
}

describe("validator", () => {
  test("returns the unchanged value, with unknown members", () => {
    const value = { name: "a", amount: 1, extra: { kept: true } };
    expect(check(value)).toBe(value);
    expect(check(value)).toEqual({ name: "a", amount: 1, extra: { kept: true } } as never);
  });

  test.each([1, 1.0, 1e3, -5, 0, Number.MAX_SAFE_INTEGER])("%p is an integer", (amount) => {
    expect(check({ name: "a", amount }).amount).toBe(amount);
  });

  test.each<[unknown, Record<string, string[]>]>([
    [{ name: "a", amount: "5" }, { amount: ["must be integer"] }],
    [{ name: "a", amount: 1.5 }, { amount: ["must be integer"] }],
    [{ name: "a", amount: null }, { amount: ["must be integer"] }],
    [{ name: "a", amount: Number.NaN }, { amount: ["must be integer"] }],
    [{ name: "", amount: 1 }, { name: ["must have 1 to 5 characters"] }],
    [{ name: "abcdef", amount: 1 }, { name: ["must have 1 to 5 characters"] }],
    [{ name: 7, amount: 1 }, { name: ["must have 1 to 5 characters"] }],
    [{ amount: 1 }, { name: ["is required: it must have 1 to 5 characters"] }],
    [{ name: "a" }, { amount: ["is required"] }],
    [{}, { name: ["is required: it must have 1 to 5 characters"], amount: ["is required"] }],
    [
      { name: "a", amount: 1, tags: ["x", 1, 2] },
      { "tags.1": ["must be string"], "tags.2": ["must be string"] },
    ],
    [{ name: "a", amount: 1, nested: { deep: 1 } }, { "nested.deep": ["must be boolean"] }],
    [{ name: "a", amount: 1, nested: {} }, { "nested.deep": ["is required"] }],
    ["text", { body: ["must be object"] }],
    [null, { body: ["must be object"] }],
  ])("%j is rejected with every invalid field once", (value, fields) => {
    const error = refusal(() => check(value));
    expect(error.status).toBe(400);
    expect(error.details.fields).toEqual(fields);
    const [first] = Object.entries(fields);
    expect(error.message).toBe(`${first?.[0]} ${first?.[1][0]}`);
  });

  test("lists at most FIELD_ERRORS_MAX invalid fields", () => {
    const list = compileValidator(Type.Object({ items: Type.Array(Type.String()) }));
    const fieldsOf = (count: number) =>
      Object.keys(refusal(() => list({ items: Array(count).fill(1) })).details.fields ?? {});
    expect(fieldsOf(FIELD_ERRORS_MAX)).toHaveLength(FIELD_ERRORS_MAX);
    expect(fieldsOf(FIELD_ERRORS_MAX + 1)).toHaveLength(FIELD_ERRORS_MAX);
    expect(fieldsOf(100_000).at(-1)).toBe(`items.${FIELD_ERRORS_MAX - 1}`);
  });

  test("a container with too many members has only this error", () => {
    const member = Type.String({ maxLength: 3 });
    const bounded = compileValidator(
      Type.Object({
        list: Type.Optional(Type.Array(member, { maxItems: 2, uniqueItems: true })),
        record: Type.Optional(Type.Record(Type.String(), member, { maxProperties: 2 })),
        either: Type.Optional(Type.Union([Type.Array(member, { maxItems: 2 }), Type.Null()])),
      }),
    );
    const wrong = Array(50_000).fill("long");
    const fields = refusal(() => bounded({ list: wrong, record: { ...wrong }, either: wrong })).details
      .fields;
    expect(Object.keys(fields ?? {})).toEqual(["list", "record", "either"]);
  });

  test("the validation stops at the last error that is shown", () => {
    let looks = 0;
    const items = Array.from({ length: 10_000 }, () => ({
      get seen() {
        looks += 1;
        return 1;
      },
    }));
    const list = compileValidator(Type.Object({ items: Type.Array(Type.Object({ seen: Type.String() })) }));
    refusal(() => list({ items }));
    expect(looks).toBeLessThan(10 * FIELD_ERRORS_MAX);
  });

  test("fields with a common prefix are distinguished", () => {
    const odd = compileValidator(Type.Record(Type.String(), Type.String()));
    const name = "n".repeat(200);
    const members = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${name}${index}`, 1]));
    expect(Object.keys(refusal(() => odd(members)).details.fields ?? {})).toEqual([`${"n".repeat(100)}…`]);
  });

  test("members of every kind of container have paths", () => {
    const schema = Type.Object(
      {
        "a/b": Type.Record(Type.String({ pattern: "^[a-z]+$" }), Type.Integer()),
        list: Type.Array(Type.Union([Type.String(), Type.Null()]), { minItems: 1, uniqueItems: true }),
      },
      { additionalProperties: false },
    );
    const value = { "a/b": { a: "x", "~": 1 }, list: [1, null], more: 1 };
    expect(refusal(() => compileValidator(schema)(value)).details.fields).toEqual({
      more: ["unexpected property"],
      "a~1b.a": ["must be integer"],
      "list.0": ["must be string"],
    });
  });

  test("a field named like a member of Object.prototype is an ordinary field", () => {
    const odd = compileValidator(Type.Record(Type.String(), Type.String()));
    const error = refusal(() => odd(JSON.parse('{"__proto__": 1, "constructor": 2}')));
    expect(Object.keys(error.details.fields ?? {}).sort()).toEqual(["__proto__", "constructor"]);
  });
});

describe("query", () => {
  const checks = inputChecks({
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ default: 20, maximum: 100 })),
      active: Type.Optional(Type.Boolean()),
      text: Type.Optional(Type.String()),
    }),
  });
  const read = (query: string) =>
    checks.query?.(`http://localhost/v1/things${query}`, { addWarnings: () => {} });

  test.each<[string, Record<string, unknown>]>([
    ["", { limit: 20 }],
    ["?", { limit: 20 }],
    ["?limit=5", { limit: 5 }],
    ["?active=true&text=a%20b", { limit: 20, active: true, text: "a b" }],
    ["?active=false", { limit: 20, active: false }],
    ["?text=5", { limit: 20, text: "5" }],
    ["?text=", { limit: 20, text: "" }],
    ["?unknown=1", { limit: 20 }],
    ["?text=a?b", { limit: 20, text: "a?b" }],
  ])("%p", (query, values) => {
    expect(read(query)).toEqual(values);
  });

  test("defaults are filled in for each request", () => {
    const first = read("");
    Object.assign(first ?? {}, { limit: 99 });
    expect(read("")).toEqual({ limit: 20 });
  });

  test.each([
    ["?limit=101", "limit"],
    ["?limit=1.5", "limit"],
    ["?limit=1e1", "limit"],
    ["?limit=", "limit"],
    ["?limit=%205", "limit"],
    ["?limit=99999999999999999999", "limit"],
    ["?limit=5&limit=6", "limit"],
    ["?active=yes", "active"],
    ["?active=1", "active"],
  ])("%p is rejected", (query, field) => {
    expect(Object.keys(refusal(() => read(query)).details.fields ?? {})).toEqual([field]);
  });

  test("an endpoint without input validates nothing", () => {
    const none = inputChecks({});
    expect(none).toEqual({ params: null, query: null, body: null });
  });
});
