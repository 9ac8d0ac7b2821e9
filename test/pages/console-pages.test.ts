import { expect, test } from "bun:test";
import { SHORTCUTS, SITEMAP } from "../../src/pages/dashboard/shell/sitemap.ts";

const doubled = (all: readonly string[]): string[] => all.filter((item, at) => all.indexOf(item) !== at);

test("shortcuts, addresses and titles of the console are unique, and no page hides a key", () => {
  const pages = SITEMAP.map(({ letter }) => `g ${letter}`);
  const single = SHORTCUTS.map(([keys]) => keys);
  expect(doubled([...pages, ...single])).toEqual([]);
  expect(single).not.toContain("g");
  for (const { letter } of SITEMAP) expect(letter).toMatch(/^[a-z]$/);
  expect(doubled(SITEMAP.map(({ path }) => path))).toEqual([]);
  const titles = SITEMAP.flatMap((page) => [
    page.title,
    ...("parts" in page ? page.parts.map(([, title]) => title) : []),
  ]);
  expect(doubled(titles)).toEqual([]);
});
