import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { atJsonPath, JSON_PATH_LENGTH_MAX, readJsonPath } from "../../../src/areas/monitors/json-path.ts";

const at = (json: string, path: string): unknown => {
  const steps = readJsonPath(path);
  if (steps === null) throw new Error(`${path} is no path`);
  return atJsonPath(JSON.parse(json), steps);
};

describe("the value at a path", () => {
  const BODY = '{"a":{"b":[{"c":1,"x y":"two"},[3]]},"é":true,"length":"own","n":null,"t":"a\u{1f642}"}';
  for (const [path, value] of [
    ["$.a.b[0].c", 1],
    ['$.a.b[0]["x y"]', "two"],
    ['$["a"]["b"][1][0]', 3],
    ["$.é", true],
    ["$.n", null],
    ["$.a.b.length", 2],
    ["$.t.length", 2],
    ["$.length", "own"],
    ["$.a.b[2]", undefined],
    ["$.a.b.c", undefined],
    ["$.n.x", undefined],
    ["$.t[0]", undefined],
    ["$.a[0]", undefined],
    ["$.a.length", undefined],
    ["$.nothing", undefined],
  ] as const) {
    test(`${path}: ${value}`, () => expect(at(BODY, path)).toEqual(value));
  }

  test("$ is the whole document", () => expect(at("[1]", "$")).toEqual([1]));

  test("names with quotes and escapes", () => {
    expect(at('{"a\\"b":1}', String.raw`$["a\"b"]`)).toBe(1);
    expect(at('{"é":2}', String.raw`$["\u00e9"]`)).toBe(2);
  });
});

describe("hostile values and paths", () => {
  for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype"]) {
    test(`${name} has no value unless the response contains it`, () => {
      expect(at("{}", `$.${name}`)).toBe(undefined);
      expect(at("[]", `$.${name}`)).toBe(undefined);
      expect(at('"text"', `$["${name}"]`)).toBe(undefined);
      expect(at(`{"${name}":{"x":5}}`, `$.${name}.x`)).toBe(5);
      expect(at(`{"${name}":{"x":5}}`, `$.${name}.y`)).toBe(undefined);
    });
  }

  test("the longest path through as many levels", () => {
    const levels = (JSON_PATH_LENGTH_MAX - 1) / 3;
    const path = `$${"[0]".repeat(levels)}`;
    expect(path.length).toBe(JSON_PATH_LENGTH_MAX);
    expect(at(`${"[".repeat(levels)}7${"]".repeat(levels)}`, path)).toBe(7);
    expect(readJsonPath(`${path}[0]`)).toBe(null);
  });

  for (const path of [
    ...["", "a", "$a", "$.", "$..a", "$.a.", "$[", "$[]", "$[-1]", "$[1.5]", "$[a]", "$.a[0", "$['a']"],
    ...['$["a]', '$["a"', '$["\\q"]', "$.a b", "$.a[*]", "$.*", "$[?(@.x)]", "$.a()", "$ .a", "$.a\n"],
    "$[1234567890]",
  ]) {
    test(`rejects ${JSON.stringify(path)}`, () => expect(readJsonPath(path)).toBe(null));
  }

  test("a valid path reads only the value", () => {
    const body = JSON.parse('{"a":[{"b":"c"}],"__proto__":[1]}');
    const inside = new Set<unknown>();
    const add = (value: unknown): void => {
      inside.add(value);
      if (typeof value === "object" && value !== null) for (const one of Object.values(value)) add(one);
    };
    add(body);
    const step = fc.oneof(
      fc.constantFrom(".a", "[0]", ".b", ".__proto__", ".constructor", ".length", '["a"]', "[1]"),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), (parts) => {
        const steps = readJsonPath(`$${parts.join("")}`);
        const found = steps === null ? undefined : atJsonPath(body, steps);
        expect(found === undefined || typeof found === "number" || inside.has(found)).toBe(true);
      }),
    );
  });
});
