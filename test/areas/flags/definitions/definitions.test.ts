import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  DEFINITION_BYTES_MAX,
  METADATA_BYTES_MAX,
  VALUE_BYTES_MAX,
} from "../../../../src/areas/flags/definitions/definition.ts";
import {
  ATTRIBUTE_LENGTH_MAX,
  CONDITIONS_MAX,
  METADATA_MAX,
  RULE_NAME_LENGTH_MAX,
  RULES_MAX,
  SEED_LENGTH_MAX,
  SPLIT_ENTRIES_MAX,
  TAG_LENGTH_MAX,
  TAGS_MAX,
  VALUE_LENGTH_MAX,
  VALUES_MAX,
  VARIANT_NAME_LENGTH_MAX,
  VARIANTS_MAX,
  WEIGHT_MAX,
} from "../../../../src/areas/flags/definitions/schema.ts";
import { FIELD_ERRORS_MAX } from "../../../../src/kernel/http/requests/validate.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "unlimited" });
});
afterAll(() => server.stop());

const list = <T>(length: number, make: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => make(index));
const many = <T>(length: number, make: (index: number) => T): Record<string, T> =>
  Object.fromEntries(list(length, (index) => [`n${index}`, make(index)]));

const condition = (more: object = {}) => ({ attribute: "plan", op: "in", values: ["pro"], ...more });
const rule = (more: object = {}) => ({ when: [condition()], serve: { variant: "on" }, ...more });
const ruled = (more: object) => ({ rules: [rule({ when: [condition(more)] })] });
const served = (serve: unknown) => ({ default: serve });
const entry = (weight: unknown = 1) => ({ variant: "on", weight });
const texts = (variants: object, more: object = {}) => ({
  type: "string",
  variants,
  default: { variant: Object.keys(variants)[0] },
  ...more,
});

/** Definitions at their limits. */
const FITTING: readonly [string, object][] = [
  ["nothing but the switch", {}],
  ["the most variants", texts(many(VARIANTS_MAX, (index) => `${index}`))],
  ["the longest name of a variant", texts({ ["A".repeat(VARIANT_NAME_LENGTH_MAX)]: "a" })],
  ["every character of a name", texts({ "0a.Z_-": "a" })],
  ["names that objects inherit", texts({ constructor: "a", toString: "b", valueOf: "c" })],
  ["the largest value", texts({ a: "x".repeat(VALUE_BYTES_MAX - 2) })],
  ["objects", { type: "object", variants: { a: { b: [1, null, { c: "é" }] } }, default: { variant: "a" } }],
  ["numbers", { type: "number", variants: { a: 0.1, b: -5e300 }, default: { variant: "a" } }],
  ["the most rules", { rules: list(RULES_MAX, () => rule()) }],
  ["the most conditions", { rules: [rule({ when: list(CONDITIONS_MAX, () => condition()) })] }],
  ["the longest name of a rule", { rules: [rule({ name: "🚩".repeat(RULE_NAME_LENGTH_MAX) })] }],
  ["the longest attribute", ruled({ attribute: "ä".repeat(ATTRIBUTE_LENGTH_MAX) })],
  ["the most values", ruled({ values: list(VALUES_MAX, String) })],
  ["the longest value", ruled({ values: ["🚩".repeat(VALUE_LENGTH_MAX)] })],
  ["values of all kinds", ruled({ values: ["a", "", 1, -0.5, true, false] })],
  ["exists", ruled({ op: "exists", values: [], not: true, ignore_case: true })],
  ["the largest split", served({ split: list(SPLIT_ENTRIES_MAX, () => entry(WEIGHT_MAX)) })],
  ["the smallest split", served({ split: [entry(0), { variant: null, weight: 1 }] })],
  ["all of a split", served({ split: [entry()], by: "account.id", seed: "", hash: "m3" })],
  ["the longest seed", served({ split: [entry()], seed: "é".repeat(SEED_LENGTH_MAX) })],
  ["the most tags", { tags: list(TAGS_MAX, (index) => `team:a_b.c-${index}`) }],
  ["the longest tag", { tags: ["0".repeat(TAG_LENGTH_MAX)] }],
  ["the most metadata", { metadata: many(METADATA_MAX, (index) => index) }],
  ["the largest metadata", { metadata: { a: "x".repeat(METADATA_BYTES_MAX - '{"a":""}'.length) } }],
  ["an off_variant", { off_variant: "on" }],
  ["no off_variant", { off_variant: null }],
  ["all defaults", { type: null, variants: null, default: null, rules: null, tags: null, metadata: null }],
  ["no version that is expected", { if_version: null }],
  ["a place in the archive", { archived: true, server_only: true }],
  ["no place in the archive", { archived: null, server_only: null }],
];

const TOO_LONG = "a".repeat(VARIANT_NAME_LENGTH_MAX + 1);

/** Definitions past a limit, with the path of the problem. */
const REFUSED: readonly [name: string, fields: object, path: string][] = [
  ["an unknown type", { type: "integer" }, "type"],
  ["one variant too many", texts(many(VARIANTS_MAX + 1, String)), "variants"],
  ["no variants", texts({}), "variants"],
  ["variants as a list", { variants: [true] }, "variants"],
  ["a name too long", { variants: { on: true, [TOO_LONG]: true } }, `variants.${TOO_LONG}`],
  ["a name that begins with a dot", { variants: { on: true, ".b": true } }, "variants..b"],
  ["a value of another type", { variants: { on: true, off: "no" } }, "variants.off"],
  ["null as a value", texts({ a: "a", b: null }), "variants.b"],
  ["a list as an object", { type: "object", variants: { a: [] }, default: { variant: "a" } }, "variants.a"],
  ["a value too large", texts({ a: "x".repeat(VALUE_BYTES_MAX - 1) }), "variants.a"],
  ["no variants of another type", { type: "string", default: { variant: "a" } }, "variants"],
  ["no default of another type", { type: "number", variants: { a: 1 } }, "default"],
  ["a default that is no variant", served({ variant: "blue" }), "default"],
  ["a default that objects inherit", served({ variant: "constructor" }), "default"],
  ["a default of explicit variants without on", { variants: { yes: true } }, "default"],
  ["an invalid off_variant", { off_variant: "blue" }, "off_variant"],
  ["an off_variant of another form", { off_variant: 5 }, "off_variant"],
  ["neither variant nor split", served({}), "default"],
  ["both variant and split", served({ variant: "on", split: [entry()] }), "default"],
  ["a seed without a split", served({ variant: "on", seed: "a" }), "default"],
  ["a field that nobody knows", served({ variant: "on", color: "red" }), "default.color"],
  ["serve as a text", { rules: [rule({ serve: "on" })] }, "rules[0].serve"],
  ["no serve", { rules: [{ when: [condition()] }] }, "rules[0].serve"],
  ["an empty split", served({ split: [] }), "default.split"],
  ["one entry too many", served({ split: list(SPLIT_ENTRIES_MAX + 1, () => entry()) }), "default.split"],
  ["no weight at all", served({ split: [entry(0), entry(0)] }), "default.split"],
  ["a weight too large", served({ split: [entry(), entry(WEIGHT_MAX + 1)] }), "default.split[1].weight"],
  ["a weight below zero", served({ split: [entry(-1)] }), "default.split[0].weight"],
  ["half a weight", served({ split: [entry(0.5)] }), "default.split[0].weight"],
  [
    "a split of what is no variant",
    served({ split: [{ variant: "b", weight: 1 }] }),
    "default.split[0].variant",
  ],
  ["an empty attribute to split by", served({ split: [entry()], by: "" }), "default.by"],
  ["a seed too long", served({ split: [entry()], seed: "s".repeat(SEED_LENGTH_MAX + 1) }), "default.seed"],
  ["another hash", served({ split: [entry()], hash: "m4" }), "default.hash"],
  ["one rule too many", { rules: list(RULES_MAX + 1, () => rule()) }, "rules"],
  ["rules as an object", { rules: {} }, "rules"],
  ["a rule without conditions", { rules: [rule(), rule({ when: [] })] }, "rules[1].when"],
  [
    "one condition too many",
    { rules: [rule({ when: list(CONDITIONS_MAX + 1, () => condition()) })] },
    "rules[0].when",
  ],
  [
    "a rule's name too long",
    { rules: [rule({ name: "n".repeat(RULE_NAME_LENGTH_MAX + 1) })] },
    "rules[0].name",
  ],
  ["a rule's field that nobody knows", { rules: [rule({ served: "on" })] }, "rules[0].served"],
  ["an unknown op", ruled({ op: "matches" }), "rules[0].when[0].op"],
  ["no attribute", ruled({ attribute: "" }), "rules[0].when[0].attribute"],
  [
    "an attribute too long",
    ruled({ attribute: "a".repeat(ATTRIBUTE_LENGTH_MAX + 1) }),
    "rules[0].when[0].attribute",
  ],
  ["a condition's field that nobody knows", ruled({ nott: true }), "rules[0].when[0].nott"],
  ["not as a text", ruled({ not: "yes" }), "rules[0].when[0].not"],
  ["no values", ruled({ values: undefined }), "rules[0].when[0].values"],
  ["empty values", ruled({ values: [] }), "rules[0].when[0].values"],
  ["one value too many", ruled({ values: list(VALUES_MAX + 1, String) }), "rules[0].when[0].values"],
  [
    "a value too long",
    ruled({ values: ["a", "v".repeat(VALUE_LENGTH_MAX + 1)] }),
    "rules[0].when[0].values[1]",
  ],
  ["a value that is an object", ruled({ values: [{}] }), "rules[0].when[0].values[0]"],
  ["values of exists", ruled({ op: "exists" }), "rules[0].when[0].values"],
  ...["starts_with", "ends_with", "contains"].map((op): [string, object, string] => [
    `an empty text to ${op}`,
    ruled({ op, values: ["a", ""] }),
    "rules[0].when[0].values",
  ]),
  ...["gt", "gte", "lt", "lte"].flatMap((op): [string, object, string][] => [
    [`${op} a text`, ruled({ op, values: ["5"] }), "rules[0].when[0].values"],
    [`${op} two numbers`, ruled({ op, values: [5, 6] }), "rules[0].when[0].values"],
  ]),
  ...["before", "after"].flatMap((op): [string, object, string][] => [
    [`${op} no date`, ruled({ op, values: ["2026-02-30T00:00:00Z"] }), "rules[0].when[0].values"],
    [`${op} two dates`, ruled({ op, values: [1, 2] }), "rules[0].when[0].values"],
  ]),
  ...["semver_eq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"].flatMap(
    (op): [string, object, string][] => [
      [`${op} no version`, ruled({ op, values: ["1.2.3.4"] }), "rules[0].when[0].values"],
      [`${op} a number`, ruled({ op, values: [2] }), "rules[0].when[0].values"],
    ],
  ),
  ["one tag too many", { tags: list(TAGS_MAX + 1, String) }, "tags"],
  ["the same tag twice", { tags: ["a", "a"] }, "tags"],
  ["a tag too long", { tags: ["a", "b".repeat(TAG_LENGTH_MAX + 1)] }, "tags[1]"],
  ["a tag in capitals", { tags: ["A"] }, "tags[0]"],
  ["one of metadata too many", { metadata: many(METADATA_MAX + 1, String) }, "metadata"],
  ["metadata too large", { metadata: { a: "x".repeat(METADATA_BYTES_MAX - 7) } }, "metadata"],
  ["metadata that is an object", { metadata: { a: {} } }, "metadata.a"],
  ["metadata whose name breaks the line", { metadata: { "a\nb": {} } }, "metadata.a?b"],
  ["server_only as a number", { server_only: 1 }, "server_only"],
  ["archived as a text", { archived: "true" }, "archived"],
  ["a version that is a text", { if_version: "1" }, "if_version"],
  ["half a version", { if_version: 1.5 }, "if_version"],
  ["a version below zero", { if_version: -1 }, "if_version"],
];

describe("a definition", () => {
  test.each(FITTING)("201 %s", async (_, fields) => {
    const flag_key = `f-${crypto.randomUUID()}`;
    const response = await account.post("/v1/gate", { flag_key, enabled: true, ...fields });
    expect(response.status, response.text).toBe(201);
    const { body, status } = await account.get(`/v1/gate/${flag_key}/definition`);
    expect(status).toBe(200);
    // Sent fields are stored, a split with its hash; null restores the default, except for off_variant.
    for (const [name, value] of Object.entries(fields))
      if (name !== "if_version" && (value !== null || name === "off_variant"))
        expect(JSON.stringify(body[name]).replaceAll(',"hash":"m3"', "")).toBe(
          JSON.stringify(value).replaceAll(',"hash":"m3"', ""),
        );
    await account.delete(`/v1/gate/${flag_key}`);
  });

  test.each(REFUSED)("400 %s", async (_, fields, path) => {
    const flag_key = "refused";
    const kept = { flag_key, enabled: true, tags: ["kept"] };
    const { body: saved } = await account.post("/v1/gate", kept);
    const response = await account.post("/v1/gate", { flag_key, enabled: false, ...fields });
    expectError(response, "gate.rule_invalid");
    expect(Object.keys(response.body.fields as object), response.text).toEqual([path]);
    const { body } = await account.get(`/v1/gate/${flag_key}/definition`);
    expect(body).toMatchObject({
      enabled: true,
      tags: ["kept"],
      rules: [],
      version: saved.version as number,
    });
  });

  test("many problems are reported, up to a limit", async () => {
    const rules = list(RULES_MAX, () => rule({ serve: { variant: "blue" }, name: 5 }));
    const response = await account.post("/v1/gate", { flag_key: "refused", enabled: true, rules });
    expectError(response, "gate.rule_invalid");
    expect(Object.keys(response.body.fields as object).slice(0, 2)).toEqual([
      "rules[0].name",
      "rules[1].name",
    ]);
    const meant = list(RULES_MAX, () => rule({ serve: { variant: "blue" } }));
    const second = await account.post("/v1/gate", { flag_key: "refused", enabled: true, rules: meant });
    expect(Object.keys(second.body.fields as object)).toEqual(
      list(FIELD_ERRORS_MAX, (index) => `rules[${index}].serve`),
    );
  });

  test(`is at most ${DEFINITION_BYTES_MAX} bytes of JSON`, async () => {
    const variants = Object.fromEntries(
      ["a", "b", "c", "d"].map((name) => [name, "x".repeat(VALUE_BYTES_MAX - 2)]),
    );
    const definition = { type: "string", variants, default: { variant: "a" } };
    const over = Buffer.byteLength(JSON.stringify(definition)) - DEFINITION_BYTES_MAX;
    const fitting = { ...definition, variants: { ...variants, d: "x".repeat(VALUE_BYTES_MAX - 2 - over) } };
    const body = { flag_key: "large", enabled: true, ...fitting };
    expect((await account.post("/v1/gate", body)).status).toBe(201);
    const larger = { ...fitting.variants, d: `${fitting.variants.d}x` };
    const response = await account.post("/v1/gate", { ...body, variants: larger });
    expectError(response, "gate.rule_invalid");
    expect(Object.keys(response.body.fields as object)).toEqual(["body"]);
    await account.delete("/v1/gate/large");
  });
});
