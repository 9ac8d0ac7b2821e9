import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

/** What axe looks for: WCAG 2.1 AA and its own best practice. */
const AXE_OPTIONS = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
  resultTypes: ["violations"],
};
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds on a page, as the rule and the start of the element. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(`axe.run(${JSON.stringify(AXE_OPTIONS)})`);
  const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}
