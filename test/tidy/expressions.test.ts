import { describe, expect, test } from "bun:test";
import { violationsIn } from "./tree.ts";

const inSource = (expression: string): string[] => violationsIn({ "src/a.ts": `\nrun(${expression});\n` });

describe("regular expressions of the server", () => {
  test.each([
    "/^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \\t]*(.*?)[ \\t]*$/",
    "/[ \\t]+$/",
    "/\\s*;\\s*/",
    "/x.*y/",
    "/(a|b)+c/",
    "/^(\\w+\\s?)*$/",
    "/^(a+)+$/",
    "/^a|b+c/",
    "/(\\d+)\\1/",
    "/\\p{L}+\\d/u",
    "/^A*a*$/i",
    "/^.*[\\n]*$/s",
    "/^\\s*a/m",
    "/(?=.*a)b/",
    "/(?<=a+)b/",
    "/^[a-z--b]+$/v",
    'new RegExp("a")',
    'RegExp("a")',
  ])("may not take more than linear time: %s", (expression) => {
    expect(inSource(expression)).toEqual(["linear-expression src/a.ts:2"]);
  });

  test.each([
    "/^[0-9a-f]{64}$/",
    "/^Bearer +(\\S+) *$/i",
    "/^\\d+\\.\\d+$/",
    "/\\s+/",
    "/[^a-z0-9]+/g",
    "/locked|busy/m",
    "/(\\d\\d:\\d\\d)$/",
  ])("may take linear time: %s", (expression) => {
    expect(inSource(expression)).toEqual([]);
  });

  test("include the patterns of the schemas, and no expression of a test or script", () => {
    const document = (pattern: string): Record<string, string> => ({
      "test/golden/openapi.json": `{\n  "type": "string",\n  "pattern": ${JSON.stringify(pattern)}\n}\n`,
    });
    expect(violationsIn(document("^[a-z]+$"))).toEqual([]);
    expect(violationsIn(document('^"[a-z]+[a-z\\d]+$'))).toEqual([
      "linear-expression test/golden/openapi.json:3",
    ]);
    expect(violationsIn({ "test/a.test.ts": "run(/\\s+$/);\n", "scripts/a.ts": "run(/\\s+$/);\n" })).toEqual(
      [],
    );
  });
});
