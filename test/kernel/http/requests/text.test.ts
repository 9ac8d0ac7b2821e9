import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { text } from "../../../../src/kernel/data/schema.ts";
import { ApiError } from "../../../../src/kernel/errors.ts";
import { compileValidator } from "../../../../src/kernel/http/requests/validate.ts";

const schema = text({ min: 1, max: 3, description: "A name." });
const check = compileValidator(Type.Object({ name: schema }));

function refusal(name: unknown): readonly string[] | undefined {
  try {
    check({ name });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.details.fields?.["name"];
    throw error;
  }
}

describe("a text of 1 to 3 characters", () => {
  test.each(["a", "abc", "äöü", "😀😀😀", "\u0000", "e\u0301a", "   "])("%j is valid", (name) => {
    expect(refusal(name)).toBe(undefined);
  });

  test.each([
    ["", "nothing"],
    ["abcd", "one character too many"],
    ["😀😀😀😀", "one emoji too many"],
    ["aaaaaaaaaaaaaaaa", "far too many"],
    ["a\ud83d", "half an emoji, its first"],
    ["\ude00a", "half an emoji, its second"],
    [3, "a number"],
    [null, "null"],
    [["a"], "a list"],
  ])("%j is invalid: %s", (name) => {
    expect(refusal(name)).toEqual(["must be a text of 1 to 3 characters"]);
  });

  test("is described in JSON Schema", () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual({
      type: "string",
      minLength: 1,
      maxLength: 3,
      description: "A name.",
      errorMessage: "must be a text of 1 to 3 characters",
    });
  });

  test("that can be empty has only a maximum", () => {
    expect(text({ min: 0, max: 3 })["errorMessage"]).toBe("must be a text of at most 3 characters");
  });
});
