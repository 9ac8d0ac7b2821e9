import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { findInexactness, pathText } from "../../src/json-text.ts";
import { processorMs } from "../support/processor-time.ts";
import { anyJson } from "../support/receipts.ts";

function problemOf(json: string, member?: string): string | null {
  const found = findInexactness(json, JSON.parse(json), member);
  return found === null ? null : `${found.path.join(".")} ${found.problem}`;
}

describe("numbers", () => {
  test.each([
    "0",
    "-0",
    "0.0",
    "-0.0e5",
    "0e999999999999",
    "1",
    "-1",
    "1.0",
    "1e2",
    "1E+2",
    "100",
    "1.50",
    "0.1",
    "1e21",
    "1e-7",
    "0.000001",
    "9007199254740991",
    "-9007199254740992",
    "9007199254740994",
    "12345678901234567000",
    "1.7976931348623157e308",
    "5e-324",
    "123456789012345",
    "100000000000000000000000",
    "0.30000000000000004",
  ])("%s is carried", (number) => {
    expect(problemOf(`[ ${number} ]`)).toBeNull();
  });

  test.each([
    "9007199254740993",
    "-9007199254740993",
    "12345678901234567890",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1234567890123456789",
    "3.141592653589793238",
    "1.7976931348623158e308",
    "4e-324",
    "1e99999999999999999999",
    "100000000000000000000001",
    "0.10000000000000000555",
  ])("%s is not", (number) => {
    expect(problemOf(`{"a":[0, ${number}]}`)).toMatch(
      /^a\.1 is a number that JSON readers cannot carry exactly/,
    );
  });

  test("long ones are checked in linear time", async () => {
    const zeros = "0".repeat(200_000);
    const used = await processorMs(() => {
      expect(problemOf(`[1${zeros}1]`)).not.toBeNull();
      expect(problemOf(`[0.${zeros}1${zeros}]`)).not.toBeNull();
      expect(problemOf(`[1e${"9".repeat(200_000)}]`)).not.toBeNull();
    });
    expect(used).toBeLessThan(1_000);
  });
});

describe("names", () => {
  test.each([
    ['{"a":1,"a":1}', "a"],
    ['{"a":1,"\\u0061":2}', "a"],
    ['{"a":{"b":[{"c":1},{"c":1,"d":2,"c":3}]}}', "a.b.1.c"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"":1,"":2}', ""],
    ['{"\\\\":1, "x" : "\\"}{" , "\\\\":2}', "\\"],
  ])("%s stands twice at %s", (json, path) => {
    expect(problemOf(json)).toBe(`${path} stands twice in one object`);
  });

  test.each([
    '{"a":"a","b":"a"}',
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":1}]',
    '{"a":["b","b","c"],"b":1,"c":1}',
    '{"a":"\\",\\"a\\":1","b":"\\\\"}',
    '{"a":1,"A":2}',
    '{ "a" : [ ] , "b" : { } , "c" : null , "d" : true }',
    '"1"',
    "[]",
  ])("%s has none twice", (json) => {
    expect(problemOf(json)).toBeNull();
  });
});

describe("a path in a message", () => {
  test.each([
    [["log", "a", 0, "b"], "log.a.0.b"],
    [[1, 2, 3, 4, 5, 6, 7, 8], "1.2.3.4.5.6.7.8"],
    [[1, 2, 3, 4, 5, 6, 7, 8, 9], "1.2.3.4.5.6.7.8…"],
    [["x".repeat(100)], "x".repeat(100)],
    [["x".repeat(101)], `${"x".repeat(100)}…`],
  ])("%j", (path, text) => {
    expect(pathText(path)).toBe(text);
  });
});

describe("a scope", () => {
  test("restricts the check to one member, including its duplicates", () => {
    expect(problemOf('{"other":{"a":1,"a":12345678901234567890},"log":{"a":1}}', "log")).toBeNull();
    expect(problemOf('{"other":1,"other":2,"log":{"a":1}}', "log")).toBeNull();
    expect(problemOf('{"log":{"a":1},"log":{"a":1}}', "log")).toBe("log stands twice in one object");
    expect(problemOf('{"other":{"log":1,"log":2},"log":{"b":[1e400]}}', "log")).toContain(
      "log.b.0 is a number",
    );
  });
});

describe("any JSON", () => {
  test("written by JSON.stringify is exact with any spacing", () => {
    fc.assert(
      fc.property(anyJson, fc.constantFrom(0, 1, "\t"), (value, space) => {
        const json = JSON.stringify(value, null, space);
        expect(findInexactness(json, JSON.parse(json))).toBeNull();
      }),
    );
  });

  test("with a duplicate member is not exact", () => {
    const object = fc.dictionary(fc.string(), anyJson, { minKeys: 1, maxKeys: 5 });
    fc.assert(
      fc.property(object, fc.nat(), fc.array(fc.string(), { maxLength: 4 }), (members, pick, around) => {
        const entries = Object.entries(members).map(
          ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
        );
        const doubled = `{${[...entries, entries[pick % entries.length]].join()}}`;
        const json = around.reduce((inner, name) => `{${JSON.stringify(name)}:[${inner}]}`, doubled);
        expect(findInexactness(json, JSON.parse(json))?.problem).toBe("stands twice in one object");
      }),
    );
  });

  test("a decimal is exact if the shortest form of the double has the same value", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
        fc.integer({ min: -30, max: 30 }),
        (digits, exponent) => {
          const json = `[${digits}e${exponent}]`;
          const exact = sameValue(digits, exponent, JSON.stringify(JSON.parse(json)[0]));
          expect(findInexactness(json, JSON.parse(json)) === null).toBe(exact);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** Compares digits × 10^exponent with a decimal text, with integers. */
function sameValue(digits: bigint, exponent: number, text: string): boolean {
  const [mantissa = "", power = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const scale = 80;
  const carried = BigInt(whole + fraction) * 10n ** BigInt(scale + Number(power) - fraction.length);
  return digits * 10n ** BigInt(scale + exponent) === carried;
}
