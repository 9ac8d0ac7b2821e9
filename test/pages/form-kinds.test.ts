import { expect, test } from "bun:test";
import { BODIES, type BodyField } from "../../src/client/generated/bodies.ts";
import { kindOf, problemOf, SECONDS } from "../../src/pages/dashboard/ui/kinds.ts";

const fields = (operation: keyof typeof BODIES): Readonly<Record<string, BodyField>> => BODIES[operation];

test("the bounds, values and patterns of a field are those of the operation's schema", () => {
  const monitor = fields("monitors.create");
  expect(monitor["timeout"]).toMatchObject({ type: "integer", minimum: 1_000, maximum: 30_000 });
  expect(monitor["confirm"]?.enum).toEqual(["any", "majority", "all"]);
  expect(fields("projects.create")["name"]).toMatchObject({ required: true, maxLength: 100 });
  expect(fields("monitors.update")["name"]).toMatchObject({ nullable: true });
  expect(fields("keys.patch")["uses.refill.every"]?.enum).toEqual(["day", "month"]);
});

test.each([
  ["headers", { type: "object" }, { "X-Shop": "42", Accept: "*/*" }, "X-Shop: 42\nAccept: */*"],
  ["payload", { type: "object" }, { a: 1 }, '{\n  "a": 1\n}'],
  ["retry_schedule", { type: "array" }, ["5s", "2h"], "5s, 2h"],
  ["event_types", { type: "array" }, ["a.*", "b"], "a.*, b"],
  ["port", { type: "integer" }, 443, "443"],
  ["title", { type: "string" }, "Shop", "Shop"],
] as const)("%s is shown as text and read back", (name, schema, value, text) => {
  const kind = kindOf(name, schema);
  expect(kind.show(value)).toBe(text);
  expect(kind.read(text)).toEqual(value);
});

test("a duration is entered in its own unit", () => {
  expect(SECONDS.show(1_500)).toBe("1.5");
  expect(SECONDS.read("2.5")).toBe(2_500);
  expect(SECONDS.show(null)).toBe("");
});

test.each([
  ["slug", { type: "string", pattern: /^[a-z]+$/, example: "shop" }, "Shop 1", "Example: shop"],
  ["scopes", { type: "array", items: /^[a-z:]+$/ }, "gate:read, B", '"B"'],
  ["payload", { type: "object" }, "{", "JSON"],
  ["payload", { type: "object" }, "1", "an object or an array"],
  ["headers", { type: "object" }, "nothing", "Name: value"],
] as const)("says what is wrong with %s", (name, schema: BodyField, text, part) => {
  expect(problemOf(kindOf(name, schema), schema, text)).toContain(part);
  expect(problemOf(kindOf(name, schema), schema, "")).toBe("");
});
