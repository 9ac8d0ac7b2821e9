import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { ECHO_LENGTH_MAX } from "../../../../src/kernel/errors.ts";
import {
  SUGGESTED_NAME_LENGTH_MAX,
  unknownFieldWarnings,
  unknownParameterWarnings,
  WARNINGS_MAX,
} from "../../../../src/kernel/http/requests/unknown-names.ts";

const SCHEMA = Type.Object({
  period_ms: Type.Optional(Type.Integer()),
  target_url: Type.Optional(Type.String()),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  steps: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  target: Type.Optional(Type.Union([Type.Object({ host: Type.String() }), Type.Null()])),
  open: Type.Optional(Type.Object({}, { additionalProperties: true })),
});
const warningsOf = (value: unknown) => unknownFieldWarnings(SCHEMA, value);

describe("unknown fields", () => {
  test.each([
    [{}, []],
    [{ labels: { any: "x" }, open: { any: 1 }, target: null }, []],
    [{ period_sm: 1 }, ["Unknown field `period_sm`. Did you mean `period_ms`?"]],
    [{ url: "x" }, ["Unknown field `url`. Did you mean `target_url`?"]],
    [{ period: 1 }, ["Unknown field `period`. Did you mean `period_ms`?"]],
    [{ nothing_like_it: 1 }, ["Unknown field `nothing_like_it`."]],
    [
      { steps: [{ name: "a" }, { name: "b", nmae: 1 }] },
      ["Unknown field `steps.1.nmae`. Did you mean `name`?"],
    ],
    [{ target: { host: "a", post: 1 } }, ["Unknown field `target.post`. Did you mean `host`?"]],
    [JSON.parse('{"__proto__": 1}'), ["Unknown field `__proto__`."]],
  ])("%j", (value, expected) => {
    expect(warningsOf(value)).toEqual(expected as string[]);
  });

  test(`at most ${WARNINGS_MAX} are listed`, () => {
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`x${at}`, 1]));
    expect(warningsOf(fields(WARNINGS_MAX)).length).toBe(WARNINGS_MAX);
    expect(warningsOf(fields(WARNINGS_MAX + 1)).length).toBe(WARNINGS_MAX);
  });

  test("long names are shortened, and have no suggestion", () => {
    const nearly = (length: number) => "period_ms".padEnd(length, "_");
    expect(warningsOf({ [nearly(SUGGESTED_NAME_LENGTH_MAX + 1)]: 1 })[0]).toEndWith("`.");
    const [warning = ""] = warningsOf({ ["x".repeat(1_000_000)]: 1 });
    expect(warning.length).toBeLessThan(ECHO_LENGTH_MAX + 30);
  });
});

test("unknown query parameters, each once", () => {
  expect(unknownParameterWarnings("limit=5&limt=6&limt=7&q", ["limit", "cursor"])).toEqual([
    "Unknown query parameter `limt`. Did you mean `limit`?",
    "Unknown query parameter `q`.",
  ]);
});
