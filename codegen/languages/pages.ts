import type { Document } from "../document.ts";
import { go } from "./go.ts";
import { MethodFinder } from "./operations.ts";
import { php } from "./php.ts";
import { python } from "./python.ts";
import { type ExampleStep, MARK, stepOf } from "./shell.ts";
import { typescript } from "./typescript.ts";

/** The languages of examples next to curl: the name of their blocks in Markdown, and their title. */
export const LANGUAGES = { ts: "TypeScript", python: "Python", go: "Go", php: "PHP" } as const;

/** A language of examples. */
export type Language = keyof typeof LANGUAGES;

/** A command of a block, and what the page says that it prints. */
interface Command {
  readonly command: string;
  readonly says: readonly string[];
}

/** A marked example in other languages, which follows its block of commands. */
const GENERATED = /\n<!-- languages -->\n.*?\n<!-- \/languages -->\n/gs;
/** A block of commands; `<!-- languages: none -->` before it says that it has no other languages. */
const BLOCK = /^(<!-- languages: none -->\n)?```sh\n(.*?)^```\n/gms;

/** The example of a block in each language. */
export type Example = Readonly<Record<Language, string>>;

/** Pages whose examples have other languages. */
const PAGES = /^docs\/(?:guides|api)\//;

/** The text of a page as it is written: without the examples in other languages. */
export function withoutLanguages(page: string): string {
  return page.replaceAll(GENERATED, "");
}

/** The text of a page with its examples of requests in all languages. */
export function withLanguages(path: string, page: string, document: Document): string {
  if (!PAGES.test(path)) return page;
  const plain = withoutLanguages(page);
  const examples = examplesOf(plain, document);
  let at = 0;
  return plain.replaceAll(BLOCK, (block) => {
    const example = examples[at];
    at += 1;
    if (example === undefined || example === null) return block;
    const blocks = Object.entries(LANGUAGES).map(
      ([language, title]) =>
        `<details>\n<summary>${title}</summary>\n\n\`\`\`${language}\n${example[language as Language]}\n\`\`\`\n\n</details>\n`,
    );
    return `${block}\n<!-- languages -->\n${blocks.join("")}\n<!-- /languages -->\n`;
  });
}

/**
 * The example of each block of commands of a page, null for a block without one. It has the requests whose responses are
 * successful and whose variables are those of examples before; commands of the shell have no form in other languages.
 */
export function examplesOf(page: string, document: Document): (Example | null)[] {
  const finder = new MethodFinder(document);
  const known = new Set(["URL", "AUTH"]);
  const steps = [...withoutLanguages(page).matchAll(BLOCK)].map(([, mark, block = ""]) => {
    const read = mark === undefined ? commandsOf(block).map(readStep) : [];
    const usable = read.filter((step) => step !== null).filter((step) => isKnown(step, known));
    return usable.some(({ kind }) => kind === "call") ? usable : null;
  });
  const uses = new Set(steps.flatMap((block) => (block ?? []).flatMap(variablesIn)));
  return steps.map((block) => {
    if (block === null) return null;
    const unique = block.filter((step, index) => step.kind !== "setup" || block[index - 1]?.kind !== "setup");
    const text = (write: (step: ExampleStep) => string): string =>
      unique.map((step) => write(step) + (step.kind === "setup" ? "\n" : "")).join("\n");
    return {
      ts: text((step) => typescript(step, finder)),
      python: text((step) => python(step, finder)),
      go: text((step) => go(step, uses)),
      php: text(php),
    };
  });
}

/** Null for a command that has no form in other languages, or that is to fail. */
function readStep({ command, says }: Command): ExampleStep | null {
  const [status] = /^\d{3}\b/.exec(says[0] ?? "") ?? [];
  return Number(status ?? 200) >= 300 ? null : stepOf(command);
}

/** Whether the variables of a step are known; notes the one that it sets, which must be a new one. */
function isKnown(step: ExampleStep, known: Set<string>): boolean {
  if (!variablesIn(step).every((name) => known.has(name))) return false;
  if (step.kind === "setup" || step.variable === null) return true;
  if (known.has(step.variable)) return false;
  known.add(step.variable);
  return true;
}

function variablesIn(step: ExampleStep): string[] {
  if (step.kind === "setup") return [];
  if (step.kind === "read") return [step.from];
  const text = step.call.path + JSON.stringify(step.call.body ?? null).replaceAll("\\u0001", MARK);
  return text.split(MARK).filter((_, at) => at % 2 === 1);
}

/** The commands of a block with their comments: a command ends where its quotes and brackets do. */
function commandsOf(block: string): Command[] {
  const commands: { command: string; says: string[] }[] = [];
  let begun: string[] = [];
  for (const line of block.split("\n")) {
    if (begun.length === 0 && line.startsWith("# ")) commands.at(-1)?.says.push(line.slice(2));
    else if (begun.length > 0 || line.trim() !== "") begun.push(line);
    if (begun.length === 0 || isOpen(begun.join("\n"))) continue;
    commands.push({ command: begun.join("\n"), says: [] });
    begun = [];
  }
  return begun.length === 0 ? commands : [...commands, { command: begun.join("\n"), says: [] }];
}

/** Whether a quote or a substitution is open at the end of a text. */
function isOpen(text: string): boolean {
  const rest = text.replace(/'[^']*'|"(?:[^"\\]|\\.)*"/g, "");
  return /['"]/.test(rest) || rest.split("$(").length > rest.split(")").length || rest.endsWith("\\");
}
