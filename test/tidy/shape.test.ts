import { describe, expect, test } from "bun:test";
import { violationsIn } from "./tree.ts";

const lines = (count: number, text = "run();"): string => `${text}\n`.repeat(count);

describe("sizes", () => {
  test("a file has 400 lines at most", () => {
    expect(violationsIn({ "src/a.ts": lines(400), "scripts/tool": lines(400, "echo") })).toEqual([]);
    const long = { "migrations/0001.sql": lines(401, "--"), "scripts/tool": lines(401, "echo") };
    expect(violationsIn({ ...long, "test/a.test.ts": lines(401), "docs/a.md": lines(900, "text") })).toEqual([
      "file-length migrations/0001.sql:401",
      "file-length scripts/tool:401",
      "file-length test/a.test.ts:401",
    ]);
  });

  test.each([
    ["function f() {", "}"],
    ["const f = () => {", "};"],
    ["class A { m() {", "} }"],
  ])("a function has 70 lines at most: %s", (open, close) => {
    const code = (count: number): string => `\n${open}\n${lines(count - 2)}${close}\n`;
    expect(violationsIn({ "src/a.ts": code(70), "scripts/a.ts": code(70) })).toEqual([]);
    expect(violationsIn({ "src/a.ts": code(71), "scripts/a.ts": code(71) })).toEqual([
      "function-length scripts/a.ts:2",
      "function-length src/a.ts:2",
    ]);
  });

  test("the blocks of a test file may be longer, its helpers may not", () => {
    const block = `describe("a", () => {\n${lines(40)}test.each([])("b", () => {\n${lines(80)}});\n});\n`;
    const helper = `function help() {\n${lines(80)}}\n`;
    expect(violationsIn({ "test/a.test.ts": block })).toEqual([]);
    expect(violationsIn({ "test/a.test.ts": helper })).toEqual(["function-length test/a.test.ts:1"]);
  });
});

describe("exports and types", () => {
  test.each(["export default 1;", "const a = 1;\nexport { a as default };"])(
    "no default export: %s",
    (text) => {
      const found = violationsIn({ "src/a.ts": text, "scripts/a.ts": text, "migrations/sql.d.ts": text });
      expect(found.map((line) => line.replace(/:\d+$/, ""))).toEqual([
        "no-default-export scripts/a.ts",
        "no-default-export src/a.ts",
      ]);
    },
  );

  test("no any", () => {
    expect(
      violationsIn({ "src/a.ts": "const any = 1;\nconst a: unknown = any;\nconst b = a as any;\n" }),
    ).toEqual(["no-any src/a.ts:3"]);
  });

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

describe("cycles", () => {
  const ring = (word: string): Record<string, string> => ({
    "src/a.ts": 'import { b } from "./b.ts";\n',
    "src/b.ts": '\nexport { c } from "./c.ts";\n',
    "src/c.ts": `${word} { a } from "./a.ts";\n`,
  });

  test("imports run in no circle", () => {
    expect(violationsIn(ring("import"))).toEqual(["no-cycle src/c.ts:1"]);
    expect(violationsIn({ "test/a.ts": 'import { a } from "./a.ts";\n' })).toEqual(["no-cycle test/a.ts:1"]);
  });

  test("types may", () => {
    expect(violationsIn(ring("import type"))).toEqual([]);
  });

  test("two ways to the same file are no circle", () => {
    const found = violationsIn({
      "src/a.ts": 'import "./b.ts";\nimport "./c.ts";\n',
      "src/b.ts": 'import "./c.ts";\n',
      "src/c.ts": "",
    });
    expect(found).toEqual([]);
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
