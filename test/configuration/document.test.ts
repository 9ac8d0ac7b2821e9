import { describe, expect, test } from "bun:test";
import { ALIASES_MAX, DOCUMENTS_MAX, parseDocuments, plainOf } from "../../src/configuration/document.ts";

const read = (text: string) => parseDocuments("f.yaml", text).map(plainOf);

describe("merge keys", () => {
  test.each([
    ["m: &m { a: 1, b: 2 }\nk: { <<: *m, b: 3 }", { a: 1, b: 3 }],
    ["m: &m { a: 1, b: 2 }\nk: { b: 3, <<: *m }", { a: 1, b: 3 }],
    ["m: &m { a: 1 }\nn: &n { a: 2, c: 3 }\nk: { <<: [*m, *n] }", { a: 1, c: 3 }],
    ["m: &m { a: { x: 1 } }\nn: &n { <<: *m, b: 2 }\nk: { <<: *n }", { a: { x: 1 }, b: 2 }],
    ['k: { "<<": 1 }', { "<<": 1 }],
  ])("%j", (text, expected) => {
    expect(read(text)).toMatchObject([{ k: expected }]);
  });

  test.each([
    ["k: { <<: 1 }", "<< must be a mapping"],
    ["m: &m { a: 1 }\nk: { <<: *m, <<: *m }", undefined],
    ["k: { <<: *m }\nm: &m { a: 1 }", "there is no anchor &m before this alias"],
    ["m: &m { <<: *m }", "is nested deeper than"],
  ])("%j: %p", (text, message) => {
    if (message === undefined) expect(read(text)).toMatchObject([{ k: { a: 1 } }]);
    else expect(() => read(text)).toThrow(message);
  });
});

describe("what is repeated without end ends at a limit", () => {
  const laugh = Array.from({ length: 8 }, (_, at) => {
    const items = Array.from({ length: 10 }, () => (at === 0 ? "x" : `*a${at - 1}`));
    return `a${at}: &a${at} [${items.join(", ")}]\n`;
  }).join("");
  // Below the limit alone, above it together.
  const part = laugh.split("\n").slice(0, 5).join("\n");

  test.each([
    ["documents", "---\n".repeat(DOCUMENTS_MAX + 1), `has more than ${DOCUMENTS_MAX} documents`],
    ["ends of documents", "...\n".repeat(DOCUMENTS_MAX + 1), `has more than ${DOCUMENTS_MAX} documents`],
    ["aliases", `- &a 1\n${"- *a\n".repeat(ALIASES_MAX + 1)}`, `has more than ${ALIASES_MAX} aliases`],
    ["commas", `[${",".repeat(500_000)}]`, "has more than 400000 values"],
    ["aliases of aliases", laugh, "expands to more than 200000 values"],
    [
      "aliases of aliases in many documents",
      `${part}\n---\n`.repeat(3),
      "expands to more than 200000 values",
    ],
  ])("%s", (_name, text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  test("up to the limit", () => {
    expect(read("---\n".repeat(DOCUMENTS_MAX))).toHaveLength(DOCUMENTS_MAX);
    expect(read(`- &a 1\n${"- *a\n".repeat(ALIASES_MAX)}`)).toHaveLength(1);
    expect(read(part)).toHaveLength(1);
  });
});
