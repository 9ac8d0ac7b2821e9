import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { StoredDefinition } from "../../../src/areas/flags/definitions/schema.ts";
import { compileFlag, evaluate } from "../../../src/areas/flags/evaluation/evaluation.ts";
import { STEPS_MAX } from "../../../src/configuration/import/flagd/conditions.ts";
import { importFlagd, parseFlagd } from "../../../src/configuration/import/flagd/flagd.ts";
import { losses, useImports } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

const FLAGS = `{
  "$schema": "https://flagd.dev/schema/v0/flags.json",
  "flags": {
    "headerColor": {
      "state": "ENABLED",
      "variants": { "red": "#FF0000", "blue": "#0000FF", "green": "#00FF00" },
      "defaultVariant": "red",
      "metadata": { "owner": "shop" },
      "targeting": {
        "if": [
          { "and": [{ "$ref": "staff" }, { ">=": [{ "var": "age" }, 18] }] },
          { "fractional": [{ "var": "email" }, ["red", 25], ["blue", 75]] },
          { "sem_ver": [{ "var": "version" }, "^", "2.1.0"] }, "green",
          { "!": [{ "or": [{ "==": [{ "var": "tier" }, "gold"] }, { "in": [{ "var": "country" }, ["DE", "AT"]] }] }] },
          { "if": [{ "<": [{ "var": "$flagd.timestamp" }, 1900000000] }, "blue"] },
          "green"
        ]
      }
    },
    "new-welcome": {
      "state": "DISABLED",
      "variants": { "true": true, "false": false },
      "defaultVariant": "false",
      "targeting": { "ends_with": [{ "var": "email" }, "@example.com"] }
    },
    "rollout": {
      "state": "ENABLED",
      "variants": { "on": true, "off": false },
      "defaultVariant": null,
      "targeting": { "fractional": [["on", 10], ["off", 90]] }
    },
    "limits": { "state": "ENABLED", "variants": { "small one": { "max": 5 }, "large": { "max": 50 } }, "defaultVariant": "small one", "targeting": {} },
    "odd": {
      "state": "ENABLED",
      "variants": { "on": true, "off": false },
      "defaultVariant": "off",
      "targeting": { "if": [{ "==": [{ "%": [{ "var": "id" }, 2] }, 1] }, "on", "off"] }
    },
    "mixed": { "state": "ENABLED", "variants": { "a": 1, "b": "x" }, "defaultVariant": "a" }
  },
  "$evaluators": { "staff": { "in": ["@example.com", { "var": ["email"] }] } },
  "metadata": { "flagSetId": "shop" }
}`;

test("flags with targeting become rules; what has no counterpart is noted", async () => {
  const imported = imports.run((draft) => importFlagd(draft, parseFlagd(FLAGS, "flags.json")));
  const { flags } = Bun.YAML.parse(imported.text) as { flags: Record<string, Record<string, unknown>> };
  const has = (attribute: string, op: string, values: unknown[], not = false) => ({
    attribute,
    op,
    values,
    ...(not ? { not } : {}),
  });
  const outside = [has("tier", "in", ["gold"], true), has("country", "in", ["DE", "AT"], true)];
  expect(flags["headercolor"]).toMatchObject({
    enabled: true,
    type: "string",
    metadata: { flagSetId: "shop", owner: "shop" },
    rules: [
      {
        when: [has("email", "contains", ["@example.com"]), has("age", "gte", [18])],
        serve: {
          split: [
            { variant: "red", weight: 25 },
            { variant: "blue", weight: 75 },
          ],
          by: "email",
          seed: "",
          hash: "m3",
        },
      },
      {
        when: [has("version", "semver_gte", ["2.0.0-0"]), has("version", "semver_lt", ["3.0.0-0"])],
        serve: { variant: "green" },
      },
      { when: [...outside, has("$now", "before", [1_900_000_000_000])], serve: { variant: "blue" } },
      { when: outside, serve: { variant: "red" } },
    ],
    default: { variant: "green" },
  });
  expect(flags["new-welcome"]).toMatchObject({
    enabled: false,
    rules: [{ when: [has("email", "ends_with", ["@example.com"])], serve: { variant: "true" } }],
    default: { variant: "false" },
  });
  expect(flags["rollout"]?.["default"]).toEqual({
    split: [
      { variant: "on", weight: 10 },
      { variant: "off", weight: 90 },
    ],
    by: "targetingKey",
    seed: "rollout",
    hash: "m3",
  });
  expect(flags["limits"]).toMatchObject({
    variants: { "small-one": { max: 5 } },
    default: { variant: "small-one" },
  });
  expect(losses(imported)).toEqual([
    "flag mixed: variants: must have values of one type: boolean, string, number or object",
    "flag odd: targeting: compares something else than an attribute (==): not carried over, everyone gets the default variant",
    "flag headerColor: name is headercolor in flags",
    "flag limits: variants.small one is named small-one",
  ]);
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(5);
  expect(after).toEqual([]);
});

describe("assignments are those of flagd", () => {
  const COLORS = ["red", "blue", "green", "yellow"];
  const variants = Object.fromEntries(COLORS.map((color) => [color, color]));
  const email = { var: "email" };
  // Expected variants of flagd's own tests.
  test.each([
    ["headerColor", { cat: [{ var: "$flagd.flagKey" }, email] }, ["blue", "yellow", "red", "blue"]],
    ["customSeededHeaderColor", { cat: ["my-seed", email] }, ["green", "red", "blue", "green"]],
    ["footerColor", email, [null, null, null, "red"]],
  ])("%s", (key, bucket, expected) => {
    const targeting = {
      if: [
        { in: ["@faas.com", email] },
        { fractional: [bucket, ...COLORS.map((color) => [color, 25])] },
        null,
      ],
    };
    const flag = { state: "ENABLED", variants, defaultVariant: "red", targeting };
    const imported = imports.run((draft) => importFlagd(draft, { flags: { [key]: flag } }));
    const { flags } = Bun.YAML.parse(imported.text) as { flags: Record<string, StoredDefinition> };
    const compiled = compileFlag(key.toLowerCase(), true, flags[key.toLowerCase()] ?? null);
    for (const [index, name] of ["rachel", "monica", "joey", "ross"].entries()) {
      const variant = expected[index];
      if (typeof variant !== "string") continue;
      expect(evaluate(compiled, { email: `${name}@faas.com` }, 0).variant).toBe(variant);
    }
  });
});

test("null in a split is the default variant", () => {
  const flag = {
    state: "ENABLED",
    variants: { true: true, false: false },
    defaultVariant: "false",
    targeting: {
      fractional: [
        [true, 1],
        [null, 9],
      ],
    },
  };
  const { text } = imports.run((draft) => importFlagd(draft, { flags: { a: flag } }));
  expect(Bun.YAML.parse(text)).toMatchObject({
    flags: {
      a: {
        default: {
          split: [
            { variant: "true", weight: 1 },
            { variant: "false", weight: 9 },
          ],
        },
      },
    },
  });
});

test("null in a condition has no counterpart without a default variant", () => {
  const targeting = { if: [{ "==": [{ var: "x" }, 1] }, null, "on"] };
  const flag = { state: "ENABLED", variants: { on: true }, defaultVariant: null, targeting };
  const imported = imports.run((draft) => importFlagd(draft, { flags: { a: flag } }));
  expect(losses(imported)[0]).toStartWith("flag a: targeting: has the result null in a condition");
});

test("YAML is accepted", () => {
  const text = "flags:\n  a:\n    state: ENABLED\n    variants: { x: 1, y: 2 }\n    defaultVariant: x\n";
  const imported = imports.run((draft) => importFlagd(draft, parseFlagd(text, "flags.yaml")));
  expect(Bun.YAML.parse(imported.text)).toMatchObject({
    flags: { a: { type: "number", default: { variant: "x" } } },
  });
});

/** The note of a flag with this targeting. */
function noteOf(targeting: unknown, evaluators: unknown = {}): string | undefined {
  const flag = { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off", targeting };
  const file = { flags: { a: flag }, $evaluators: evaluators };
  return losses(imports.run((draft) => importFlagd(draft, file)))[0];
}

describe("targeting that is not carried over", () => {
  const x = { var: "x" };
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ "==": [{ var: `x${index}` }, 1] }));
  test.each([
    [{ if: [{ $ref: "none" }, "on"] }, "refers to none, which is not in $evaluators"],
    [{ if: [{ $ref: "loop" }, "on"] }, `has more than ${STEPS_MAX} operations`],
    [{ if: [{ "==": [x, 1] }, "neither"] }, 'has the result "neither", which is no variant'],
    [{ if: [{ "==": [x, x] }, "on"] }, "compares with a computed value (==)"],
    [{ if: [{ "==": [{ var: ["x", 1] }, 1] }, "on"] }, "reads an attribute with a default"],
    [{ fractional: [["on", { var: "w" }]] }, "has a computed weight"],
    [{ fractional: [{ cat: [x, x] }, ["on", 1]] }, "has buckets by something else than one attribute"],
    [{ if: [{ or: many(51) }, "on"] }, "has more than 50 alternatives"],
    [{ if: [{ and: many(21) }, "on"] }, "has more than 20 conditions of which all must match"],
    [
      { if: [{ and: Array.from({ length: 12 }, () => ({ or: many(2) })) }, "on"] },
      "has more than 50 alternatives",
    ],
    [{ if: many(51).flatMap((one) => [one, "on"]) }, "has more than 50 rules"],
  ])("%#: %j", (targeting, message) => {
    expect(noteOf(targeting, { loop: { $ref: "loop" } })).toStartWith(`flag a: targeting: ${message}`);
  });
});

test.each([
  ["[]", "flagd must be an object."],
  ['{"flags": []}', 'must have {"flags": {…}}'],
  ['{"flags": {"a": 1}}', "flag a must be an object."],
  ['{"flags": {"a": {"variants": []}}}', "flag a: variants must be an object."],
  ["{", "is not JSON"],
  [`{"a":${"[".repeat(65)}${"]".repeat(65)}}`, "is nested deeper than 64 levels"],
])("%s is rejected", (text, message) => {
  expect(() => imports.run((draft) => importFlagd(draft, parseFlagd(text, "flags.json")))).toThrow(message);
});

test("names of the prototype are names like others", () => {
  const text =
    '{"flags": {"__proto__": {"state": "ENABLED", "variants": {"__proto__": 1, "constructor": 2}, "defaultVariant": "constructor"}}}';
  const imported = imports.run((draft) => importFlagd(draft, parseFlagd(text, "flags.json")));
  expect(imported.text).toContain("constructor: 2");
  expect(imported.text).toContain("flag-__proto__:");
});

test("a flag with a number that a double does not hold is omitted with a note", () => {
  const flag = (variants: string) =>
    `{ "state": "ENABLED", "variants": ${variants}, "defaultVariant": "a", "targeting": {} }`;
  const text = `{ "flags": {
    "long": ${flag('{ "a": 9007199254740993 }')}, "infinite": ${flag('{ "a": { "b": [1e999] } }')},
    "good": ${flag('{ "a": 9007199254740992 }')} } }`;
  const imported = imports.run((draft) => importFlagd(draft, parseFlagd(text, "flags.json")));
  expect(Object.keys((Bun.YAML.parse(imported.text) as { flags: object }).flags)).toEqual(["good"]);
  expect(losses(imported)).toEqual([
    "flag long: variants.a: is a number that JSON readers cannot carry exactly: send it as a string. The flag is not carried over",
    "flag infinite: variants.a.b.0: is a number that JSON readers cannot carry exactly: send it as a string. The flag is not carried over",
  ]);
  expect(() => parseFlagd("flags: { a: { variants: { b: .inf } } }", "flags.yaml")).toThrow("flags.yaml:1:");
});
