import { expect, test } from "bun:test";
import { indented } from "../../src/pages/dashboard/core/indent.ts";

test("JSON is indented, and its values are unchanged", () => {
  const text = '{"a":[],"b":{"c":[1,12345678901234567890,"x\\"{,}: "],"d":{ }},"e":-1.50e2,"f":null}';
  const lines = [
    "{",
    '  "a": [],',
    '  "b": {',
    '    "c": [',
    "      1,",
    "      12345678901234567890,",
    '      "x\\"{,}: "',
    "    ],",
    '    "d": {}',
    "  },",
    '  "e": -1.50e2,',
    '  "f": null',
    "}",
  ];
  expect(indented(text)).toBe(lines.join("\n"));
  expect(indented(lines.join("\n"))).toBe(lines.join("\n"));
});

test("other texts, and long ones, stay as they are", () => {
  for (const text of ["", "ok", "12345678901234567890", '"a"', "{", '{"a":1}}'])
    expect(indented(text)).toBe(text);
  const long = `[${"1,".repeat(200_000)}1]`;
  expect(indented(long)).toBe(long);
});

test("a deep text does not grow beyond a limit", () => {
  const deep = "[".repeat(2_000) + "]".repeat(2_000);
  expect(indented(deep).length).toBeLessThan(400_000);
});
