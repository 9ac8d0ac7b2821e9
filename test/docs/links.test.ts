import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const PAGES = ["README.md", "CHANGELOG.md", ...new Bun.Glob("docs/**/*.md").scanSync(ROOT)].sort();

/** The anchors of a page, derived from its headings as code hosts do. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/```.*?```/gs, "").matchAll(/^#+ (.*)$/gm);
  return new Set(
    [...headings].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Broken links of a page. */
function brokenLinks(page: string): string[] {
  const text = readFileSync(join(ROOT, page), "utf8").replace(/```.*?```/gs, "");
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    if (/^(https?|mailto):/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? join(ROOT, page) : join(ROOT, dirname(page), path);
    if (!existsSync(target) || relative(ROOT, target).startsWith("..")) return true;
    return anchor !== undefined && !anchorsOf(readFileSync(target, "utf8")).has(anchor);
  });
}

describe("links lead somewhere", () => {
  test.each(PAGES)("%s", (page) => expect(brokenLinks(page)).toEqual([]));
});

test("every page can be reached from the README", () => {
  const reached = new Set(["README.md"]);
  for (const page of reached) {
    const text = readFileSync(join(ROOT, page), "utf8");
    for (const [, link = ""] of text.matchAll(/\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)/g)) {
      const target = join(dirname(page), link);
      if (existsSync(join(ROOT, target))) reached.add(target);
    }
  }
  expect(PAGES.filter((page) => !reached.has(page) && page !== "CHANGELOG.md")).toEqual([]);
});
