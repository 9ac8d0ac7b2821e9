import { checkTree } from "./rules/check.ts";

/** Checks a tree given as path → text; returns `rule path:line` for each violation. */
export function violationsIn(tree: Readonly<Record<string, string>>): string[] {
  const files = Object.entries(tree).map(([path, text]) => ({ path, text }));
  return checkTree(files).map(({ rule, path, line }) => `${rule} ${path}:${line}`);
}
