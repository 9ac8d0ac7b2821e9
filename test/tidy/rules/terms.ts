import { parseSync, visitorKeys } from "oxc-parser";
import type { SourceText } from "./model.ts";

/** Words that the project does not use in this sense, and the standard term for each. */
const TERMS: readonly (readonly [pattern: string, write: string])[] = [
  ["answer(s|ed|ing)?", "response, respond, return"],
  ["ask(s|ed|ing)?", "request, probe, poll, check"],
  ["tell(s|ing)?|told", "notify, report, show"],
  ["refus(e|es|ed|ing|al|als)", "reject, error"],
  ["is kept|are kept|kept for", "store, retention"],
  ["bounds?|bounded", "limit, maximum"],
  ["figures?", "metric, number, limit"],
  ["tr(y|ied) (it |them )?again|another try|tries", "retry, attempt"],
  ["look-ups?", "lookup"],
  ["moments?", "time, timestamp"],
  ["at once", "immediately; concurrently"],
  ["by hand", "manually"],
  ["anew", "again, new"],
  ["own balance", "account balance"],
  ["for nothing", "free of charge"],
  ["planned work", "maintenance window"],
  ["own line|the line is cut|line seems cut", "connectivity; offline"],
  ["let in|lets in|left out|leaves? out|leaving out", "include, exclude, omit"],
  ["beside|besides", "next to, alongside, in addition"],
  ["whoever|whomever|nobody who", "anyone, any client that"],
  ["goes on|go on|as ever", "continues; still"],
  ["mend(s|ed|ing)?", "fix"],
  ["taken? back|takes back|taking back|took back", "roll back, undo"],
  ["gives? back|given back|gave back|lets? go", "release, refund, return"],
  ["judg(e|es|ed|ing)", "evaluate"],
  ["believ(e|es|ed)", "trust, verify"],
  ["that waits|that is late|under way", "pending, overdue, in flight"],
  ["took the place of|takes the place of", "replaced"],
  ["whose it is", "owner"],
  ["made ready", "cached, precomputed"],
  ["ha(s|ve) room|is room|no room|room for", "space, capacity"],
  ["quick(ly)?", "fast"],
];

const DIALECT = new RegExp(`\\b(?:${TERMS.map(([pattern]) => pattern).join("|")})\\b`, "gi");

/** Kinds of prose: guides, texts of the program (messages, descriptions, labels), and comments. */
const KINDS = [
  "guides",
  "texts",
  "comments",
  "script texts",
  "script comments",
  "test texts",
  "test comments",
] as const;
export type Prose = (typeof KINDS)[number];

/** Roots of the code, with the kinds of its texts and comments. Texts of tests include their names. */
const CODE: readonly (readonly [root: string, texts: Prose, comments: Prose])[] = [
  ["src/", "texts", "comments"],
  ["scripts/", "script texts", "script comments"],
  ["codegen/", "script texts", "script comments"],
  ["bench/", "script texts", "script comments"],
  ["test/harness/", "script texts", "script comments"],
  ["test/tidy/rules/", "script texts", "script comments"],
  ["test/", "test texts", "test comments"],
];

/** Texts that are not prose of the project: generated files, this rule and its test. */
const EXCLUDED =
  /\/generated\/|^src\/client\/areas\/methods\.ts$|^test\/tidy\/(rules\/terms|terms\.test)\.ts$/;

/** How often a kind of prose uses words outside the glossary. */
export interface Usage {
  words: number;
  /** Each occurrence: the place, then the word. */
  readonly found: string[];
}

/** Words outside the glossary per 10,000 words. */
export function rateOf({ words, found }: Usage): number {
  return words === 0 ? 0 : (found.length / words) * 10_000;
}

/** Counts words outside the glossary in the prose of a tree. */
export function usageOf(files: readonly SourceText[]): Record<Prose, Usage> {
  const usage = Object.fromEntries(KINDS.map((kind) => [kind, { words: 0, found: [] }])) as unknown as Record<
    Prose,
    Usage
  >;
  const add = (kind: Prose, place: string, text: string): void => {
    usage[kind].words += text.split(/\s+/).filter((word) => /[A-Za-z]/.test(word)).length;
    for (const [word] of text.matchAll(DIALECT)) usage[kind].found.push(`${place}: ${word}`);
  };
  for (const { path, text } of files) {
    if (/^(README|docs\/.*)\.md$/.test(path)) add("guides", path, withoutCode(text));
    const kinds = CODE.find(([root]) => path.startsWith(root));
    if (kinds === undefined || !/\.tsx?$/.test(path) || EXCLUDED.test(path)) continue;
    const { program, comments } = parseSync(path, text);
    for (const comment of comments) add(kinds[2], path, comment.value);
    for (const shown of sentencesIn(program)) add(kinds[1], path, shown);
  }
  return usage;
}

/** Markdown without its code: examples show what the server sends. */
function withoutCode(text: string): string {
  return text.replace(/```[\s\S]*?```/g, "").replace(/`[^`\n]*`/g, "x");
}

/** String literals with several words, which somebody reads. */
function* sentencesIn(node: object): Generator<string> {
  const { type } = node as { type: string };
  if (type === "ImportDeclaration" || type === "ExportAllDeclaration") return;
  const text = textOf(node);
  if (
    text !== null &&
    (type === "JSXText" || / \w+ /.test(text)) &&
    !/^\s*(SELECT|INSERT|UPDATE|DELETE)\b/.test(text)
  )
    yield text;
  for (const key of visitorKeys[type] ?? []) {
    const value: unknown = Reflect.get(node, key);
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child === "object" && child !== null && "type" in child) yield* sentencesIn(child);
  }
}

function textOf(node: object): string | null {
  const { type, value } = node as { type: string; value?: unknown };
  if (type === "TemplateElement") return (value as { raw: string }).raw;
  return (type === "Literal" || type === "JSXText") && typeof value === "string" ? value : null;
}
