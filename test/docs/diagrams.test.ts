import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { drawing } from "../../codegen/diagrams.ts";
import { allDiagrams, stamped } from "../../codegen/stale-diagrams.ts";
import { ROOT } from "../harness/processes/server-process.ts";

const DIAGRAMS = allDiagrams(ROOT);

test.each(DIAGRAMS)("$path is what `bun codegen/main.ts` draws", ({ path, source }) => {
  expect(readFileSync(join(ROOT, path), "utf8")).toBe(stamped(drawing(source), source));
});

test("every picture of a diagram has its diagram, with a name of its own", () => {
  const drawn = DIAGRAMS.map(({ path }) => path).sort();
  const files = [...new Bun.Glob("docs/pictures/*.svg").scanSync(ROOT)].sort();
  expect(files).toEqual(drawn);
});

test.each(DIAGRAMS)("$path has a title, a description in its source, and no style of its own", (diagram) => {
  const picture = readFileSync(join(ROOT, diagram.path), "utf8");
  expect(picture).toMatch(/role="img" aria-labelledby="([\w-]+)".*\n<title id="\1">/);
  expect(picture).not.toMatch(/<style|style=|https?:\/\/(?!www\.w3\.org)/);
  expect(diagram.source).toContain("accDescr: ");
});
