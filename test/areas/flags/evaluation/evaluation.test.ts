import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Condition, StoredDefinition } from "../../../../src/areas/flags/definitions/schema.ts";
import {
  compareVersions,
  parseVersion,
  SEMVER_LENGTH_MAX,
} from "../../../../src/areas/flags/definitions/semver.ts";
import { EFFORT_MAX } from "../../../../src/areas/flags/evaluation/context.ts";
import { compileFlag, evaluate } from "../../../../src/areas/flags/evaluation/evaluation.ts";
import { ApiError } from "../../../../src/kernel/errors.ts";
import { processorMs } from "../../../support/processor-time.ts";
import { TEST_START_MS } from "../../../support/server.ts";
import { CHECKOUT_RULES } from "../checkout.ts";

const ON_OFF = { on: true, off: false };
const CHECKOUT: StoredDefinition = {
  variants: ON_OFF,
  rules: CHECKOUT_RULES,
  default: { variant: "off" },
  off_variant: "off",
};

function outcome(definition: StoredDefinition, context: object, enabled = true): unknown {
  const flag = compileFlag("new-checkout", enabled, definition);
  const { key, metadata: _, ...rest } = evaluate(flag, { ...context }, 0);
  expect(key).toBe("new-checkout");
  return rest;
}

describe("a flag with rules", () => {
  test.each<[string, object, boolean, string, string]>([
    ["nobody", {}, false, "off", "DEFAULT"],
    ["of acme", { email: "Ada@ACME.com" }, true, "on", "TARGETING_MATCH"],
    ["45 of 100", { targetingKey: "user-1", plan: "pro", app: { version: "2.3.0" } }, false, "off", "SPLIT"],
    ["22 of 100", { targetingKey: "user-2", plan: "pro", app: { version: "2.10.1" } }, true, "on", "SPLIT"],
    [
      "before the release",
      { targetingKey: "user-2", plan: "pro", app: { version: "2.3.0-rc.1" } },
      ...([false, "off", "DEFAULT"] as const),
    ],
    ["no key to split by", { plan: "pro", app: { version: "3" } }, false, "off", "DEFAULT"],
    ["59 of 100", { targetingKey: "用户", plan: "scale", "app.version": "v2.3" }, false, "off", "SPLIT"],
  ])("%s", (_, context, value, variant, reason) => {
    expect(outcome(CHECKOUT, context)).toEqual({ value, variant, reason });
  });

  test("switched off", () => {
    expect(outcome(CHECKOUT, {}, false)).toEqual({ value: false, variant: "off", reason: "DISABLED" });
    expect(outcome({ ...CHECKOUT, off_variant: null }, {}, false)).toEqual({ reason: "DISABLED" });
  });

  test("without rules", () => {
    expect(outcome({ variants: ON_OFF, default: { variant: "on" } }, {})).toEqual({
      value: true,
      variant: "on",
      reason: "STATIC",
    });
    for (const enabled of [true, false]) {
      const plain = evaluate(compileFlag("f", enabled, null), {}, 0);
      const [variant, reason] = enabled ? (["on", "STATIC"] as const) : (["off", "DISABLED"] as const);
      expect(plain).toEqual({ key: "f", value: enabled, variant, reason, metadata: {} });
      // A definition with defaults gives the same result.
      expect(evaluate(compileFlag("f", enabled, { tags: ["a"] }), {}, 0)).toEqual(plain);
    }
  });

  test("every outcome has the metadata", () => {
    const flag = compileFlag("f", true, { metadata: { owner: "checkout", tier: 2, beta: true } });
    expect(evaluate(flag, {}, 0).metadata).toEqual({ owner: "checkout", tier: 2, beta: true });
  });
});

describe("splits", () => {
  const theme: StoredDefinition = {
    type: "string",
    variants: { red: "red", green: "green", blue: "blue" },
    default: {
      by: "account",
      split: [
        { variant: "red", weight: 1 },
        { variant: "green", weight: 1 },
        { variant: "blue", weight: 2 },
      ],
    },
  };

  test.each([
    [1, "green"],
    [2, "green"],
    [3, "blue"],
    [42, "red"],
    ["42", "red"],
    [true, "blue"],
  ])("by an account %p", (account, variant) => {
    const flag = compileFlag("theme", true, theme);
    expect<unknown>(evaluate(flag, { account }, 0)).toEqual({
      key: "theme",
      value: variant,
      variant,
      reason: "SPLIT",
      metadata: {},
    });
  });

  test.each([[""], [null], [undefined], [{}], [["a"]], [{ account: "1" }]])(
    "nothing to split by: %p",
    (account) => {
      const flag = compileFlag("theme", true, theme);
      expect(evaluate(flag, { account }, 0)).toEqual({ key: "theme", reason: "DEFAULT", metadata: {} });
      const other = compileFlag("theme", true, { ...theme, off_variant: "red" });
      expect(evaluate(other, { account }, 0)).toMatchObject({
        value: "red",
        variant: "red",
        reason: "DEFAULT",
      });
    },
  );

  test("a null entry continues with the next rule, and in the default serves off_variant", () => {
    const nobody = { split: [{ variant: null, weight: 1 }] };
    const everybody = [{ attribute: "targetingKey", op: "exists" as const }];
    const definition: StoredDefinition = {
      variants: ON_OFF,
      rules: [
        { when: everybody, serve: nobody },
        { when: everybody, serve: { variant: "on" } },
      ],
      default: nobody,
      off_variant: "off",
    };
    expect(outcome(definition, { targetingKey: "a" })).toMatchObject({
      value: true,
      reason: "TARGETING_MATCH",
    });
    const without = { ...definition, rules: [] };
    expect(outcome(without, { targetingKey: "a" })).toMatchObject({ value: false, reason: "DEFAULT" });
  });

  test("an empty seed is valid, and an entry with weight 0 gets nobody", () => {
    const entries = [
      { variant: "off", weight: 0 },
      { variant: "on", weight: 1 },
    ];
    for (let user = 0; user < 100; user += 1) {
      const context = { targetingKey: `user-${user}` };
      const serve = { split: entries, seed: "" };
      expect(outcome({ variants: ON_OFF, default: serve }, context)).toMatchObject({ value: true });
    }
    const half = [
      { variant: "off", weight: 50 },
      { variant: "on", weight: 50 },
    ];
    const sides = (seed: string) =>
      Array.from({ length: 64 }, (_, user) => {
        const context = { targetingKey: `user-${user}` };
        return outcome({ variants: ON_OFF, default: { split: half, seed } }, context);
      });
    expect(sides("")).not.toEqual(sides("new-checkout"));
    expect(sides("new-checkout")).toEqual(
      Array.from({ length: 64 }, (_, user) => {
        const context = { targetingKey: `user-${user}` };
        return outcome({ variants: ON_OFF, default: { split: half } }, context);
      }),
    );
  });
});

const AT = "2026-11-21T19:00:00Z";
const AT_MS = Date.parse(AT);

/** Whether a condition matches a value of its attribute. */
function conditionMatches(condition: Omit<Condition, "attribute">, value: unknown, now = 0): boolean {
  return holdsIn({ attribute: "a", ...condition }, { a: value }, now);
}

function holdsIn(condition: Condition, context: Record<string, unknown>, now = 0): boolean {
  const flag = compileFlag("f", true, {
    rules: [{ when: [condition], serve: { variant: "on" } }],
    default: { variant: "off" },
  });
  return evaluate(flag, context, now).value === true;
}

describe("conditions", () => {
  test.each<[Omit<Condition, "attribute">, unknown]>([
    [{ op: "in", values: [1] }, "1"],
    [{ op: "in", values: ["1"] }, 1],
    [{ op: "in", values: ["true"] }, true],
    [{ op: "in", values: ["a"], not: true }, undefined],
    [{ op: "in", values: ["a"], not: true }, null],
    [{ op: "in", values: ["a"], not: true }, {}],
    [{ op: "in", values: ["b"] }, ["a", "b"]],
    [{ op: "in", values: [""] }, ""],
    [{ op: "in", values: ["É"], ignore_case: true }, "é"],
    [{ op: "starts_with", values: ["x", "ab"] }, "abc"],
    [{ op: "starts_with", values: [4] }, 42],
    [{ op: "ends_with", values: ["bc"] }, ["x", "abc"]],
    [{ op: "contains", values: ["B"], ignore_case: true }, "abc"],
    [{ op: "gt", values: [5] }, 6],
    [{ op: "gte", values: [5] }, 5],
    [{ op: "lt", values: [5] }, -1],
    [{ op: "lte", values: [5] }, [9, 5]],
    [{ op: "before", values: [AT] }, AT_MS - 1],
    [{ op: "after", values: [AT] }, "2026-11-21T20:00:00+01:00"],
    [{ op: "after", values: [AT_MS] }, AT],
    [{ op: "semver_lt", values: ["1.0.0"] }, "1.0.0-alpha.1"],
    [{ op: "semver_eq", values: ["1.0.0"] }, "v1"],
    [{ op: "semver_eq", values: ["1.0.0"] }, "1.0.0+b5"],
    [{ op: "semver_gt", values: ["2.9"] }, "2.10.0"],
    [{ op: "semver_lte", values: ["2.9"] }, "2.9.0"],
    [{ op: "exists" }, ""],
    [{ op: "exists" }, []],
    [{ op: "exists" }, false],
    [{ op: "exists", not: true }, null],
  ])("%p holds for %p", (condition, value) => {
    expect(conditionMatches(condition, value)).toBe(true);
    expect(conditionMatches({ ...condition, not: condition.not !== true }, value)).toBe(false);
  });

  test.each<[Omit<Condition, "attribute">, unknown]>([
    [{ op: "in", values: ["a"] }, undefined],
    [{ op: "in", values: ["a"] }, "A"],
    [{ op: "in", values: ["null"] }, null],
    [{ op: "in", values: ["[object Object]"] }, {}],
    [{ op: "in", values: ["a"] }, [["a"], { a: "a" }, null]],
    [{ op: "in", values: ["Infinity"] }, Number.POSITIVE_INFINITY],
    [{ op: "starts_with", values: ["bc"] }, "abc"],
    [{ op: "contains", values: ["ac"] }, "abc"],
    [{ op: "gt", values: [5] }, "6"],
    [{ op: "gt", values: [5] }, 5],
    [{ op: "lt", values: [5] }, null],
    [{ op: "before", values: [AT] }, AT],
    [{ op: "before", values: [AT] }, "yesterday"],
    [{ op: "after", values: [AT] }, true],
    [{ op: "semver_eq", values: ["1.2.3"] }, "1.2.3.4"],
    [{ op: "semver_lte", values: ["1.2.3"] }, "1.2.3.4"],
    [{ op: "semver_gte", values: ["1.2.3"] }, "1.2.3.4"],
    [{ op: "semver_eq", values: ["3"] }, true],
    [{ op: "semver_gt", values: ["1"] }, "02.0.0"],
    [{ op: "exists" }, undefined],
    [{ op: "exists" }, null],
  ])("%p does not hold for %p", (condition, value) => {
    expect(conditionMatches(condition, value)).toBe(false);
  });

  test("an attribute is the member with its name, or else nested, and never inherited", () => {
    const expected = (attribute: string): Condition => ({ attribute, op: "in", values: ["x"] });
    expect(holdsIn(expected("a.b"), { a: { b: "x" } })).toBe(true);
    expect(holdsIn(expected("a.b"), { "a.b": "x", a: { b: "y" } })).toBe(true);
    expect(holdsIn(expected("a.b"), { "a.b": null, a: { b: "x" } })).toBe(false);
    expect(holdsIn(expected("a.b.c"), { a: { b: { c: "x" } } })).toBe(true);
    expect(holdsIn(expected("a.0"), { a: ["x"] })).toBe(false);
    expect(holdsIn(expected("a.length"), { a: "x" })).toBe(false);
    for (const attribute of ["constructor", "constructor.name", "__proto__", "toString", "a..b", "."])
      expect(holdsIn({ attribute, op: "exists" }, { a: {} })).toBe(false);
    expect(holdsIn(expected("__proto__"), JSON.parse('{"__proto__": "x"}'))).toBe(true);
  });

  test("$now is the server's time, even if the context has it", () => {
    const after: Condition = { attribute: "$now", op: "after", values: [AT] };
    expect(holdsIn(after, { $now: "2099-01-01T00:00:00Z" }, AT_MS - 1)).toBe(false);
    expect(holdsIn(after, {}, AT_MS)).toBe(true);
    expect(holdsIn({ ...after, op: "before" }, {}, AT_MS)).toBe(false);
    expect(holdsIn({ ...after, op: "before" }, {}, TEST_START_MS)).toBe(TEST_START_MS < AT_MS);
  });
});

describe("versions", () => {
  test("are ordered as in the SemVer specification", () => {
    const ordered = [
      ...["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"],
      ...["1.0.0-rc.1", "1.0.0", "1.0.1", "1.1", "2", "10.0.0", "10.0.99999999999999999999"],
    ].map((text) => parseVersion(text) as NonNullable<ReturnType<typeof parseVersion>>);
    for (const [one, first] of ordered.entries())
      for (const [other, second] of ordered.entries())
        expect(Math.sign(compareVersions(first, second))).toBe(Math.sign(one - other));
  });

  test("are ordered as by Bun for every pair", () => {
    const part = fc.oneof(fc.nat(3), fc.nat(200));
    const name = fc.constantFrom("0", "1", "2", "11", "alpha", "beta", "rc", "x-1", "A");
    const version = fc
      .tuple(part, part, part, fc.array(name, { maxLength: 3 }))
      .map(([a, b, c, names]) => `${a}.${b}.${c}${names.length === 0 ? "" : `-${names.join(".")}`}`);
    fc.assert(
      fc.property(version, version, (one, other) => {
        const [first, second] = [parseVersion(one), parseVersion(other)];
        if (first === null || second === null) throw new Error("a version is not read");
        expect(Math.sign(compareVersions(first, second))).toBe(Bun.semver.order(one, other));
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    "",
    "v",
    "1.",
    "1.2.",
    ".1",
    "01",
    "1.02",
    "1.2.3-",
    "1.2.3-01",
    "1.2.3-a..b",
    "1.2.3+",
    "1.2.3+a..b",
  ])("%p is not a version", (text) => expect(parseVersion(text)).toBeNull());

  test.each(["1.2.3.4", "1,2", " 1", "1 ", "1.2.3-ü", "-1", "1e3"])("%p is not a version either", (text) => {
    expect(parseVersion(text)).toBeNull();
  });

  test(`have ${SEMVER_LENGTH_MAX} characters at most`, () => {
    expect(parseVersion("1".repeat(SEMVER_LENGTH_MAX))).not.toBeNull();
    expect(parseVersion("1".repeat(SEMVER_LENGTH_MAX + 1))).toBeNull();
  });
});

describe("hostile contexts", () => {
  const list = <T>(length: number, make: (index: number) => T): T[] =>
    Array.from({ length }, (_, index) => make(index));
  const values = list(1_000, (index) => `value-${index}`);
  const rules = (op: Condition["op"], count: number, more: Partial<Condition> = {}): StoredDefinition => ({
    rules: Array.from({ length: count }, () => ({
      when: [{ attribute: "a", op, values, ...more }],
      serve: { variant: "on" },
    })),
  });

  function codeOf(definition: StoredDefinition, context: Record<string, unknown>): string {
    try {
      evaluate(compileFlag("f", true, definition), context, 0);
      return "ok";
    } catch (error) {
      return error instanceof ApiError ? error.code : String(error);
    }
  }

  test("fail as a client error above the limit of comparisons", async () => {
    const texts = list(20_000, () => "v");
    const used = await processorMs(() => {
      for (const op of ["contains", "starts_with", "ends_with"] as const)
        expect(codeOf(rules(op, 4), { a: texts })).toBe("validation_error");
      const long = { a: "v".repeat(64 * 1024) };
      expect(codeOf(rules("contains", 4, { ignore_case: true }), long)).toBe("validation_error");
      for (const [op, expected] of [
        ["before", AT],
        ["semver_gt", "1"],
      ] as const) {
        const when = [{ attribute: "a", op, values: [expected] }];
        const definition = { rules: list(50, () => ({ when, serve: { variant: "on" } })) };
        const versions = { a: list(4_000, () => "-".repeat(SEMVER_LENGTH_MAX)) };
        expect(codeOf(definition, versions)).toBe("validation_error");
      }
    });
    // A few milliseconds each; minutes without the limit.
    expect(used).toBeLessThan(1_000);
    // A large context or large conditions alone are fine.
    expect(codeOf(rules("in", 5), { a: texts })).toBe("ok");
    expect(codeOf(rules("contains", 4), { a: "v" })).toBe("ok");
  });

  test("the limit is exact", () => {
    const context = (length: number) => ({ a: list(length, () => 1) });
    // Each element costs one comparison per value, one to read it and one to check it.
    const fitting = Math.floor(EFFORT_MAX / (values.length + 2));
    expect(codeOf(rules("starts_with", 1), context(fitting))).toBe("ok");
    expect(codeOf(rules("starts_with", 1), context(fitting + 1))).toBe("validation_error");
  });
});
