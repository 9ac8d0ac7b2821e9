import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withoutLanguages } from "../../codegen/languages/pages.ts";
import { ROOT } from "../harness/processes/server-process.ts";

/** A command that a reader pastes, and its documented outcome. */
export interface Step {
  readonly command: string;
  /** The lines of the comment after the command. */
  readonly says: readonly string[];
}

/** The text of a page. */
export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

/** The text of a page as it is written: without the examples in other languages, which are generated. */
export function readWritten(page: string): string {
  return withoutLanguages(readPage(page));
}

/** The shell blocks of a page, in order. */
export function shellBlocks(text: string): string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
}

/** The pasted commands from top to bottom, each with all of its lines. */
export function stepsOf(text: string): Step[] {
  const steps: { command: string; says: string[] }[] = [];
  for (const block of shellBlocks(text)) {
    let begun: string[] = [];
    for (const line of block.split("\n")) {
      if (begun.length === 0 && line.trim() === "") continue;
      if (begun.length === 0 && line.startsWith("# ")) {
        steps.at(-1)?.says.push(line.slice(2));
        continue;
      }
      begun.push(line);
      if (!isWhole(begun.join("\n"))) continue;
      steps.push({ command: begun.join("\n"), says: [] });
      begun = [];
    }
    if (begun.length > 0) throw new Error(`a command without its end: ${begun.join("\n")}`);
  }
  return steps;
}

/** Whether a shell would run it without another line. */
function isWhole(command: string): boolean {
  return Bun.spawnSync(["sh", "-n", "-c", command], { stderr: "ignore" }).success;
}

/** A pattern for a text in which `…` matches anything. */
export function patternOf(text: string): RegExp {
  const parts = text.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}
