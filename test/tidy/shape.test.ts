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
    expect(violationsIn({ "src/client/generated/a.ts": lines(401) })).toEqual([]);
  });

  test("a file of the console has 250", () => {
    const file = "src/pages/dashboard/pages/keys.tsx";
    expect(violationsIn({ [file]: lines(250) })).toEqual([]);
    expect(violationsIn({ [file]: lines(251) })).toEqual([`file-length ${file}:251`]);
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
  const cite = (document: string) => `run();\n/** A rule (${document}, ${"sec"}tion 4). */\n`;
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
