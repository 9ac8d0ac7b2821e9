import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "../../../src/json-text.ts";
import {
  compileSchema,
  SCHEMA_BYTES_MAX,
  SCHEMA_LEVELS_MAX,
  SUBSCHEMAS_MAX,
} from "../../../src/kernel/json-schema/compile.ts";
import { SCHEMA_ERRORS_MAX, STEPS_MAX, validate } from "../../../src/kernel/json-schema/validate.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";

/** A group of the official JSON Schema Test Suite (2020-12, MIT license), of those whose keywords are supported. */
interface Group {
  readonly file: string;
  readonly name: string;
  readonly schema: unknown;
  readonly tests: readonly (readonly [isValid: boolean, value: unknown])[];
}

const SUITE = readFileSync(join(import.meta.dir, "suite.jsonl"), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => parseJson(line) as Group);
const files = new Map<string, Group[]>();
for (const group of SUITE) files.set(group.file, [...(files.get(group.file) ?? []), group]);

const problems = async (schema: unknown, value: unknown) =>
  (await validate(compileSchema("schema", schema), value)).map(({ path, message }) => [
    path.join("."),
    message,
  ]);
const isValid = async (schema: unknown, value: unknown) => (await problems(schema, value)).length === 0;
const thrown = (schema: unknown): string => {
  try {
    compileSchema("schema", schema);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
};

describe("the official test suite", () => {
  test.each([...files])("%s", async (_, groups) => {
    for (const { name, schema, tests } of groups)
      for (const [isExpected, value] of tests)
        expect([name, value, await isValid(schema, value)]).toEqual([name, value, isExpected]);
  });
});

describe("errors", () => {
  test("name the place and what is expected, at most five", async () => {
    const schema = {
      type: "object",
      required: ["id"],
      additionalProperties: false,
      properties: {
        id: { type: "string" },
        items: { type: "array", items: { properties: { amount: { type: "number", minimum: 0 } } } },
        state: { enum: ["open", "paid"] },
      },
    };
    expect(await problems(schema, { items: [{ amount: 1 }, { amount: -1 }], state: "x", other: 1 })).toEqual([
      ["id", "is required"],
      ["items.1.amount", "must be at least 0"],
      ["state", 'must be one of "open", "paid"'],
      ["other", "must be omitted: the schema allows nothing here"],
    ]);
    expect(await problems({ items: { type: "number" } }, Array(9).fill("x"))).toHaveLength(SCHEMA_ERRORS_MAX);
    expect(await problems({ type: ["string", "null"] }, 1)).toEqual([["", "must be a string or null"]]);
  });

  test("of numbers with more digits than a double holds are exact", async () => {
    const value = parseJson("12345678901234567890.5");
    expect(await isValid({ minimum: parseJson("12345678901234567890.4") }, value)).toBe(true);
    expect(await isValid({ maximum: parseJson("12345678901234567890.4") }, value)).toBe(false);
    expect(await isValid({ type: "integer" }, value)).toBe(false);
    expect(await isValid({ const: parseJson("12345678901234567890.50") }, value)).toBe(true);
    expect(await isValid({ multipleOf: 0.01 }, 19.99)).toBe(true);
    expect(await isValid({ multipleOf: 0.01 }, 19.995)).toBe(false);
  });
});

describe("a schema is rejected", () => {
  test.each([
    ["a pattern", { properties: { a: { pattern: "^(a+)+$" } } }, "schema.properties.a.pattern"],
    ["pattern properties", { patternProperties: {} }, "schema.patternProperties"],
    ["a dynamic reference", { $dynamicRef: "#a" }, "schema.$dynamicRef"],
    ["an id", { $id: "https://example.com/" }, "schema.$id"],
    ["a reference to elsewhere", { $ref: "https://example.com/a" }, "schema.$ref"],
    ["a reference to nowhere", { $ref: "#/$defs/a" }, "schema.$ref"],
    ["a pattern behind a reference", { $ref: "#/x/0", x: [{ pattern: "a" }] }, "schema.$ref.pattern"],
    ["another dialect", { $schema: "http://json-schema.org/draft-07/schema#" }, "schema.$schema"],
    ["an unknown type", { type: "text" }, "schema.type"],
    ["a list for a schema", { items: [] }, "schema.items"],
    ["an empty list of schemas", { anyOf: [] }, "schema.anyOf"],
    ["a count below 0", { minItems: -1 }, "schema.minItems"],
    ["a text for a number", { minimum: "1" }, "schema.minimum"],
    ["a multiple of 0", { multipleOf: 0 }, "schema.multipleOf"],
    ["names that are no texts", { required: [1] }, "schema.required"],
    ["no schema", 1, "schema"],
  ])("%s", (_, schema, field) => {
    expect(thrown(schema)).toStartWith(`${field} `);
  });

  test("a property called like a rejected keyword, and a value with one, are accepted", () => {
    expect(thrown({ properties: { pattern: {}, $id: {} }, const: { pattern: "x" } })).toBe("");
  });

  test("beyond the limits of size, levels and subschemas, and not at them", () => {
    const text = (length: number) => ({ title: "x".repeat(length - '{"title":""}'.length) });
    expect(thrown(text(SCHEMA_BYTES_MAX))).toBe("");
    expect(thrown(text(SCHEMA_BYTES_MAX + 1))).toContain("bytes");
    const nested = (levels: number): object =>
      levels === 1 ? {} : { properties: { a: nested(levels - 1) } };
    expect(thrown(nested(SCHEMA_LEVELS_MAX))).toBe("");
    expect(thrown(nested(SCHEMA_LEVELS_MAX + 1))).toContain("levels");
    const wide = (count: number) => ({ allOf: Array.from({ length: count }, () => ({})) });
    expect(thrown(wide(SUBSCHEMAS_MAX))).toBe("");
    expect(thrown(wide(SUBSCHEMAS_MAX + 1))).toContain("subschemas");
  });
});

describe("a validation ends", () => {
  const tooLong = [["", expect.stringContaining(`more than ${STEPS_MAX} steps`)]];
  const many = Array.from({ length: 20_000 }, (_, n) => n);
  const wide = { allOf: Array(9).fill({ items: { type: "number" } }) };
  // Each level doubles the work.
  const branching = {
    $defs: { a: { anyOf: [{ items: { $ref: "#/$defs/a" } }, { items: { $ref: "#/$defs/a" } }], not: {} } },
    $ref: "#/$defs/a",
  };
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
  const CASES: readonly (readonly [name: string, schema: unknown, value: unknown])[] = [
    ["many items", wide, many],
    ["branches", branching, nested(60)],
    ["a loop of references", { $ref: "#" }, 1],
    ["long texts", { allOf: Array(900).fill({ minLength: 1_000_000 }) }, "x".repeat(1_000_000)],
    [
      "values that are compared at each level",
      {
        $defs: { a: { enum: [1], items: { $ref: "#/$defs/a" } } },
        allOf: Array(50).fill({ uniqueItems: true }),
      },
      many,
    ],
  ];
  test.each(CASES)("after a number of steps: %s", async (_, schema, value) => {
    expect(await problems(schema, value)).toEqual(tooLong);
  });

  const members = Object.fromEntries(many.map((n) => [`n${n}`, n]));
  const chain = (length: number, last: object) => ({
    $defs: Object.fromEntries(
      Array.from({ length }, (_, at) => [
        `a${at}`,
        at === length - 1 ? last : { $ref: `#/$defs/a${at + 1}` },
      ]),
    ),
    $ref: "#/$defs/a0",
  });
  const LARGE: typeof CASES = [
    [
      "a large object that all of a chain of references evaluate",
      { ...chain(SUBSCHEMAS_MAX - 2, { additionalProperties: true }), unevaluatedProperties: false },
      members,
    ],
    [
      "a large list that all of a chain of references evaluate",
      { ...chain(SUBSCHEMAS_MAX - 2, { items: true }), unevaluatedItems: false },
      many,
    ],
    ["numbers of members", { allOf: Array(SUBSCHEMAS_MAX).fill({ minProperties: 1 }) }, members],
    [
      "members of which the first is wrong",
      { anyOf: Array(SUBSCHEMAS_MAX / 2).fill({ additionalProperties: { type: "string" } }) },
      members,
    ],
    ["a large value that is none of short ones", { enum: [{}, [1]] }, { a: [members, members] }],
    ["a large value that is none of long ones", { enum: [many.slice(0, 10_000)] }, many],
    ["many items that differ", { uniqueItems: true }, many.map((n) => ({ n }))],
  ];
  test.each([...CASES, ...LARGE])("without holding up others: %s", async (_, schema, value) => {
    const compiled = compileSchema("schema", schema);
    expect(await leastMs(TURN_MS_MAX, () => longestTurnMs(() => validate(compiled, value)))).toBeLessThan(
      TURN_MS_MAX,
    );
  });
});
