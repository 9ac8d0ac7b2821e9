import { expect, test } from "bun:test";
import { join } from "node:path";
import { type Prose, rateOf, usageOf } from "./rules/terms.ts";

const ROOT = join(import.meta.dir, "../..");

/** Occurrences per 10,000 words: each of these words also has a sense that is right here and there. */
const RATES_MAX: Readonly<Record<Prose, number>> = {
  guides: 10,
  texts: 10,
  comments: 15,
  "script texts": 22,
  "script comments": 12,
  "test texts": 12,
  "test comments": 42,
};

test("guides, texts and comments use the standard terms", async () => {
  const patterns = ["README.md", "docs/**/*.md", "{src,scripts,codegen,bench,test}/**/*.{ts,tsx}"];
  const all = patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(ROOT)]);
  const paths = all.filter((path) => !path.includes("node_modules/"));
  const files = await Promise.all(
    paths.map(async (path) => ({ path, text: await Bun.file(join(ROOT, path)).text() })),
  );
  for (const [prose, usage] of Object.entries(usageOf(files)) as [
    Prose,
    ReturnType<typeof usageOf>[Prose],
  ][]) {
    expect(usage.words, prose).toBeGreaterThan(prose === "script texts" ? 3_000 : 10_000);
    expect(rateOf(usage), `${prose}:\n${usage.found.join("\n")}`).toBeLessThanOrEqual(RATES_MAX[prose]);
  }
});

test("a word outside the glossary is found in each kind of prose, and not in code", () => {
  const code = `// The server answers at once.\nexport const answer = "SELECT answer FROM x";\nthrow new Error("The server refuses it.");\n`;
  const guide = "It is kept at once.\n\n```sh\nanswer at once\n```\n";
  const usage = usageOf([
    { path: "src/a.ts", text: code },
    { path: "docs/a.md", text: guide },
    { path: "scripts/a.ts", text: code },
    { path: "test/a.test.ts", text: code },
  ]);
  expect(usage.comments.found).toEqual(["src/a.ts: answers", "src/a.ts: at once"]);
  expect(usage.texts.found).toEqual(["src/a.ts: refuses"]);
  expect(usage["script comments"].found).toEqual(["scripts/a.ts: answers", "scripts/a.ts: at once"]);
  expect(usage["script texts"].found).toEqual(["scripts/a.ts: refuses"]);
  expect(usage["test comments"].found).toEqual(["test/a.test.ts: answers", "test/a.test.ts: at once"]);
  expect(usage["test texts"].found).toEqual(["test/a.test.ts: refuses"]);
  expect(usage.guides.found).toEqual(["docs/a.md: is kept", "docs/a.md: at once"]);
});
