import { describe, expect, test } from "bun:test";
import { violationsIn } from "./tree.ts";

const lines = (count: number, text = "run();"): string => `${text}\n`.repeat(count);

describe("statements", () => {
  test.each([
    ["function f() {", "}"],
    ["const f = () => {", "};"],
    ["class A { m() {", "} }"],
  ])("a function has 40 at most: %s", (open, close) => {
    const code = (count: number): string => `\n${open}\n${lines(count)}${close}\n`;
    expect(violationsIn({ "src/a.ts": code(40), "scripts/a.ts": code(40) })).toEqual([]);
    expect(violationsIn({ "src/a.ts": code(41), "scripts/a.ts": code(41) })).toEqual([
      "function-statements scripts/a.ts:2",
      "function-statements src/a.ts:2",
    ]);
  });

  test("those of inner functions count for these alone, and blocks are not counted", () => {
    const inner = `function f() {\n${lines(30)}const g = () => {\n${lines(35)}};\n}\n`;
    expect(violationsIn({ "src/a.ts": inner })).toEqual([]);
    const nested = `function f() {\n{ ${lines(40)} }\n}\n`;
    expect(violationsIn({ "src/a.ts": nested })).toEqual([]);
  });

  test("a test may have any number", () => {
    expect(violationsIn({ "test/a.test.ts": `test("a", () => {\n${lines(80)}});\n` })).toEqual([]);
  });
});

test("a literal is written in one piece", () => {
  const code =
    "export const both = { ...{ a: 1, b: 2 }, c: 3 };\nexport const copy = { ...both, ...(both.a ? { d: 4 } : {}) };\n";
  const main = { "src/main.ts": 'import { both, copy } from "./a.ts";\nboth();\ncopy();\n' };
  expect(violationsIn({ ...main, "src/a.ts": code })).toEqual(["literal-spread src/a.ts:1"]);
});

test("a doc comment is followed by what it documents", () => {
  const orphan = "/** The second. */";
  const code = `/** The file. */\n\nimport "./b.ts";\n\n/** The first. */\nconst a = {\n  /** A field. */\n  b: 1,\n};\n`;
  const inFile = (text: string): string[] => violationsIn({ "src/b.ts": "", "test/a.ts": text });
  expect(inFile(`${code}// A line.\n${orphan}\n// Another line.\nrun(a);\n`)).toEqual([]);
  for (const end of [`${orphan}\n\n/** The third. */\nconst c = 1;\n`, orphan, `{\n${orphan}\n}\n`])
    expect(inFile(code + end), end).toEqual([`doc-comment test/a.ts:${end.startsWith("{") ? 11 : 10}`]);
});

test("two booleans in a row are members of an object", () => {
  const inFile = (code: string): string[] => violationsIn({ "test/a.ts": code });
  expect(inFile("const f = (a: boolean, b: number, c = true) => [a, b, c];\nf(true, 1);\n")).toEqual([]);
  expect(
    inFile("const f = ({ a, b }: { a: boolean; b: boolean }) => [a, b];\nf({ a: true, b: true });\n"),
  ).toEqual([]);
  for (const params of ["a: boolean, b: boolean", "n: number, a: boolean, b = false"])
    expect(inFile(`\nfunction f(${params}) {}\nf();\n`), params).toEqual(["flags-in-a-row test/a.ts:2"]);
  expect(
    inFile("class A {\n  constructor(private readonly a: boolean, b: boolean) {}\n}\nnew A();\n"),
  ).toEqual(["flags-in-a-row test/a.ts:2"]);
});

test.each(["one", "own", "given", "made", "none"])(
  "%s is the name of no variable and no parameter",
  (name) => {
    const inFile = (code: string): string[] => violationsIn({ "src/main.ts": code });
    expect(inFile(`run({ ${name}: 1 }.${name});\n`)).toEqual([]);
    for (const code of [
      `const ${name} = 1;`,
      `(${name}) => 1;`,
      `const [${name}] = [1];`,
      `(...${name}) => 1;`,
    ])
      expect(inFile(`\n${code}\n`), code).toEqual(["vague-name src/main.ts:2"]);
    expect(violationsIn({ "test/a.ts": `const ${name} = 1;\n` })).toEqual([]);
  },
);

describe("exports", () => {
  test("an export that nothing imports", () => {
    const main = { "src/main.ts": 'import { used } from "./a.ts";\nused();\n' };
    const code = [
      "export const used = () => other();",
      "export const other = (): Shown => ({});",
      "export interface Shown {}",
      "export type Hidden = number;",
    ].join("\n");
    expect(violationsIn({ ...main, "src/a.ts": code })).toEqual([
      "unused-export src/a.ts:2",
      "unused-export src/a.ts:4",
    ]);
    const test = 'import { other, type Hidden } from "../src/a.ts";\n';
    expect(violationsIn({ ...main, "src/a.ts": code, "test/a.test.ts": test })).toEqual([]);
    expect(violationsIn({ ...main, "src/a.ts": code, "src/b.ts": 'import * as a from "./a.ts";\n' })).toEqual(
      [],
    );
  });

  test("a file that cannot be parsed", () => {
    expect(violationsIn({ "src/a.ts": "const a = 1;\nconst = ;\n" })).toEqual(["syntax src/a.ts:2"]);
  });
});

describe("forbidden texts", () => {
  test.each([
    "../sha+red",
    "/wo+rk/main",
    "registry.np+mjs.org",
    "TO+DO",
    "FIX+ME",
    "@ts-ig+nore",
    "@ts-noc+heck",
  ])("%s", (parts) => {
    expect(violationsIn({ "docs/a.md": `one\n${parts.replace("+", "")}\n` })).toEqual([
      "forbidden-text docs/a.md:2",
    ]);
  });

  test.each(["test.sk+ip('a')", "describe.on+ly('a')"])("%s", (parts) => {
    expect(violationsIn({ "test/a.test.ts": parts.replace("+", "") })).toEqual([
      "forbidden-text test/a.test.ts:1",
    ]);
  });
});

test("a section is cited with its document", () => {
  const cite = (document: string) => `run();\n/** A rule (${document}, ${"sec"}tion 4). */\nrun();\n`;
  const cited = {
    "src/a.ts": cite("decisions"),
    "test/a.test.ts": cite("see there"),
    "scripts/tool": cite("x"),
  };
  expect(violationsIn(cited)).toEqual([
    "citation scripts/tool:2",
    "citation src/a.ts:2",
    "citation test/a.test.ts:2",
  ]);
  expect(violationsIn({ "src/a.ts": cite("RFC 9110"), "docs/a.md": cite("the contract") })).toEqual([]);
});
