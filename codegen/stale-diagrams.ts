import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { diagramsOf, pictureOf } from "../scripts/guides/code-blocks.ts";

/** A diagram of a page, and the file of its picture. */
export interface Diagram {
  readonly path: string;
  readonly source: string;
}

/** The diagrams of all pages. */
export function allDiagrams(root: string): Diagram[] {
  const pages = ["README.md", ...new Bun.Glob("docs/**/*.md").scanSync(root)].sort();
  return pages
    .flatMap((page) => diagramsOf(readFileSync(join(root, page), "utf8")))
    .map((source) => ({ path: pictureOf(source), source }));
}

/** The diagrams that have changed since their pictures were drawn. */
export function staleDiagrams(root: string): Diagram[] {
  return allDiagrams(root).filter(({ path, source }) => {
    const file = join(root, path);
    return !existsSync(file) || !readFileSync(file, "utf8").startsWith(stampOf(source));
  });
}

/** A picture with the hash of its source in front. */
export function stamped(picture: string, source: string): string {
  return `${stampOf(source)}${picture}`;
}

function stampOf(source: string): string {
  return `<!-- ${Bun.hash(source).toString(16)} -->\n`;
}
