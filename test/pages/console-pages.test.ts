import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const PAGES = join(import.meta.dir, "../../src/pages/dashboard/shell/pages.ts");

test("every page of the console has a unique shortcut letter", () => {
  const letters = [...readFileSync(PAGES, "utf8").matchAll(/letter: "(\w)"/g)].map(([, letter]) => letter);
  expect(letters.length).toBeGreaterThan(10);
  expect(new Set(letters).size).toBe(letters.length);
});
