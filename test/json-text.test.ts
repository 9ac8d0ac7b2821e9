import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  compareNumbers,
  EXACT_DIGITS_MAX,
  EXACT_NUMBERS_MAX,
  endOfString,
  findExactNumber,
  findExcess,
  isExactNumber,
  isNestedDeeper,
  isValueDeeper,
  JSON_VALUES_MAX,
  parseJson,
  withExactNumbers,
} from "../src/json-text.ts";
import { processorMs } from "./support/processor-time.ts";
import { anyJson } from "./support/receipts.ts";

const arrays = (levels: number, inner = ""): string => `${"[".repeat(levels)}${inner}${"]".repeat(levels)}`;
const objects = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

/** Levels of a value, calculated recursively. */
function levelsOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}

describe("levels of a text", () => {
  test.each([
    ["arrays", arrays],
    ["objects", objects],
  ])("%s: up to the limit and above it", (_, nested) => {
    for (const levels of [1, 10, 500]) {
      expect(isNestedDeeper(nested(levels), levels)).toBe(false);
      expect(isNestedDeeper(nested(levels + 1), levels)).toBe(true);
      expect(isNestedDeeper(nested(250_000), levels)).toBe(true);
    }
  });

  test("side by side are no depth", () => {
    expect(isNestedDeeper(`[${Array(9_000).fill("[{}]").join()}]`, 3)).toBe(false);
    expect(isNestedDeeper(`[${Array(9_000).fill("[{}]").join()}]`, 2)).toBe(true);
  });

  test.each([
    ["brackets in a text", '"[[[[{{{{"'],
    ["behind an escaped quote", String.raw`"\"[[[[{{{{"`],
    ["behind an escaped backslash and a quote", String.raw`"\\\"[[[[{{{{"`],
    ["in a name", '"]]]]", "[[[["'],
  ])("%s are none", (_, text) => {
    expect(isNestedDeeper(`[${text}]`, 1)).toBe(false);
    expect(isNestedDeeper(`[${text},${arrays(1)}]`, 1)).toBe(true);
  });

  test("a text that ends with a backslash within ends there", () => {
    expect(isNestedDeeper(String.raw`["\\",[[]]]`, 2)).toBe(true);
    expect(endOfString(String.raw`"a\"b\\" more`, 0)).toBe(8);
    expect(endOfString('"never', 0)).toBe(6);
  });

  test("of any JSON are those of its value", () => {
    fc.assert(
      fc.property(anyJson, fc.nat({ max: 6 }), fc.constantFrom(0, 2), (value, levelsMax, space) => {
        const deeper = levelsOf(value) > levelsMax;
        expect(isNestedDeeper(JSON.stringify(value, null, space), levelsMax)).toBe(deeper);
        expect(isValueDeeper(value, levelsMax)).toBe(deeper);
      }),
    );
  });

  test("any megabyte is read only once", async () => {
    const size = 1024 * 1024;
    for (const unit of ["[", "{}", '"[",', String.raw`"\"",`, "\\", '"', "[]", " "]) {
      const text = unit.repeat(size / unit.length);
      const used = await processorMs(() => {
        isNestedDeeper(text, 500);
        isNestedDeeper(`${arrays(499)}"${text}`, 500);
      });
      expect(used).toBeLessThan(500);
    }
  });
});

/** Number of values in a value, including itself, calculated recursively. */
function valuesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((sum: number, member) => sum + valuesOf(member), 1);
}

describe("values of a text", () => {
  test("of any JSON are those of its value", () => {
    fc.assert(
      fc.property(anyJson, fc.constantFrom(0, 2), (value, space) => {
        const text = JSON.stringify(value, null, space);
        const count = valuesOf(value);
        expect(findExcess(text, 1_000, count)).toBe(null);
        expect(findExcess(text, 0, count - 1)).not.toBe(null);
      }),
    );
  });

  test.each([
    ["numbers", "1"],
    ["texts", '"a,[{:"'],
    ["literals", "false"],
    ["empty lists", "[]"],
    ["empty objects", "{ }"],
    ["members", '{"name":null}'],
  ])("%s: to the limit and past it", (_, unit) => {
    const each = unit.includes(":") && unit.startsWith("{") ? 2 : 1;
    // The list itself is one value as well.
    const count = Math.floor((JSON_VALUES_MAX - 1) / each);
    const list = (length: number): string => `[${Array(length).fill(`${unit}   `).join()}]`;
    expect(findExcess(list(count), 500)).toBe(null);
    expect(findExcess(list(count + 1), 500)).toBe("values");
  });

  test("are counted no further than the limit, and what is not JSON is not scanned to its end", () => {
    const tail = " ".repeat(1024 * 1024);
    expect(findExcess(`[${"1,".repeat(JSON_VALUES_MAX)}`, 500)).toBe("values");
    for (const unit of ["{}", "[]", ":", "a", "\\"]) {
      expect(findExcess(unit.repeat(8 * JSON_VALUES_MAX + 2) + tail, 500)).toBe("values");
    }
  });
});

test("a value that contains itself is deeper than any limit", () => {
  const value: Record<string, unknown> = {};
  value.self = value;
  expect(isValueDeeper(value, 500)).toBe(true);
});

describe("parsing without loss of digits", () => {
  test.each([
    ['{"id":1234567890123456789,"at":[9007199254740993,0.1,{"b":1e400}]}'],
    ["12345678901234567890"],
    ["-0.12345678901234567890"],
    ['{"__proto__":12345678901234567890,"constructor":1234567890123456789}'],
    ['{"a\\"b":1234567890123456789,"s":"[ 1234567890123456789"}'],
  ])("%s is written as it was read", (text) => expect(JSON.stringify(parseJson(text))).toBe(text));

  test.each([
    ['{"a":[12345678901234567890],"a":[1]}', '{"a":[1]}'],
    ['{"a":{"b":12345678901234567890},"a":7}', '{"a":7}'],
    ['{"a":9007199254740993,"a":9007199254740992}', '{"a":9007199254740992}'],
    ['{"a":9007199254740992,"a":9007199254740993}', '{"a":9007199254740993}'],
  ])("of members with one name the last counts: %s", (text, expected) =>
    expect(JSON.stringify(parseJson(text))).toBe(expected),
  );

  test("gives what JSON.parse gives wherever a double holds the numbers", () => {
    fc.assert(
      fc.property(anyJson, fc.boolean(), (value, isRisky) => {
        const text = JSON.stringify(isRisky ? [value, 1e20] : value);
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([
    ["0.10000000000000001", 0.1],
    ["-1.1000000000000001", -1.1],
    ["0.29999999999999999", 0.3],
    ["2.9999999999999999e-1", 0.3],
  ])("reads %s, the 17 digits of a double, as that double", (text, number) => {
    expect(parseJson(text)).toBe(number);
  });

  test.each(["0.100000000000000005", "72057594037927937", "1234567890123456.78"])(
    "reads %s, which no double has in 17 digits, with its digits",
    (text) => expect(isExactNumber(parseJson(text))).toBe(true),
  );

  test("of a parsed text happens only if it may have such numbers", () => {
    const value = { hash: "4e12", at: 1.5 };
    expect(withExactNumbers(value, '{"hash":"4e12","at":1.5}')).toBe(value);
    const text = '{"a":12345678901234567890}';
    expect(JSON.stringify(withExactNumbers<unknown>(JSON.parse(text), text))).toBe(text);
  });

  test("knows the path of the first such number", () => {
    expect(findExactNumber(parseJson('{"a":[1,{"b":1e400}],"c":1e401}'))).toEqual(["a", "1", "b"]);
    expect(findExactNumber(parseJson('{"a":[1,{"b":1e40}]}'))).toBeNull();
  });

  test("has a limit of exact numbers and of values around them", () => {
    const exact = (count: number) => `[${Array(count).fill("1234567890123456789").join()}]`;
    expect(JSON.stringify(parseJson(exact(EXACT_NUMBERS_MAX)))).toBe(exact(EXACT_NUMBERS_MAX));
    expect(() => parseJson(exact(EXACT_NUMBERS_MAX + 1))).toThrow(RangeError);
    const among = (ones: number) => `[1234567890123456789${",1".repeat(ones)}]`;
    expect(parseJson(among(JSON_VALUES_MAX - 2))).toBeArrayOfSize(JSON_VALUES_MAX - 1);
    expect(() => parseJson(among(JSON_VALUES_MAX - 1))).toThrow(RangeError);
  });

  test("has a limit of a number's length: filters compare its digits at every message", () => {
    const digits = (count: number) => `{"n":${"9".repeat(count)}}`;
    expect(JSON.stringify(parseJson(digits(EXACT_DIGITS_MAX)))).toBe(digits(EXACT_DIGITS_MAX));
    expect(() => parseJson(digits(EXACT_DIGITS_MAX + 1))).toThrow(RangeError);
    expect(() => parseJson(`1.${"0".repeat(EXACT_DIGITS_MAX)}`)).toThrow(RangeError);
    expect(parseJson(JSON.stringify("9".repeat(EXACT_DIGITS_MAX + 1)))).toBeString();
  });

  test("compares numbers of any length", () => {
    const ordered = [
      "-1e400",
      "-12345678901234567891",
      "-12345678901234567890",
      "-1",
      "-0.5",
      "0",
      "0.25",
      "0.3",
      "1",
    ];
    ordered.push("1.00000000000000000001", "99", "100", "9007199254740992", "9007199254740993", "1e400");
    for (const [at, member] of ordered.entries())
      for (const [below, other] of ordered.entries())
        expect(Math.sign(compareNumbers(member, other)), `${member} ${other}`).toBe(Math.sign(at - below));
    expect(compareNumbers("100", "1e2")).toBe(0);
    expect(compareNumbers("-0", "0.0")).toBe(0);
  });
});
