import type { SourceText, Violation } from "./model.ts";

/** A text that no file may contain; in two parts, so that this file does not contain it either. */
interface ForbiddenText {
  readonly parts: readonly [string, string];
  readonly fix: string;
}

const PRIVATE_PLACE = "the tree must not name places outside it; describe the thing itself";
const UNFINISHED = "finish it, or leave it out";
const HIDDEN_ERROR = "repair the type, or say why with @ts-expect-error";
const PARTIAL_TESTS = "every test runs, always; repair or remove it";

const FORBIDDEN: readonly ForbiddenText[] = [
  { parts: ["../sha", "red"], fix: PRIVATE_PLACE },
  { parts: ["/wo", "rk/"], fix: PRIVATE_PLACE },
  { parts: ["registry.np", "mjs"], fix: "name no registry host; packages are found by name" },
  { parts: ["TO", "DO"], fix: UNFINISHED },
  { parts: ["FIX", "ME"], fix: UNFINISHED },
  { parts: ["@ts-ig", "nore"], fix: HIDDEN_ERROR },
  { parts: ["@ts-noc", "heck"], fix: HIDDEN_ERROR },
  { parts: [".sk", "ip("], fix: PARTIAL_TESTS },
  { parts: [".on", "ly("], fix: PARTIAL_TESTS },
];

/** Texts that no file of the tree may contain. */
export function checkWords(source: SourceText): Violation[] {
  return FORBIDDEN.flatMap(({ parts, fix }) => {
    const word = parts.join("");
    return linesWith(source.text, word).map((line) => ({
      path: source.path,
      line,
      rule: "forbidden-text",
      message: `"${word}"; ${fix}`,
    }));
  });
}

/** A section by its number: its document must be named next to it. */
const SECTION = /\bsections? \d/i;
const DOCUMENT = /\bRFC \d/;

/** A comment cites only what its reader can find: sections of an RFC, but not of a page without numbers. */
export function checkCitations({ path, text }: SourceText): Violation[] {
  const message = "a section of no document; say the rule itself, or name a heading of a page in docs";
  return text
    .split("\n")
    .flatMap((line, index) =>
      SECTION.test(line) && !DOCUMENT.test(line)
        ? [{ path, line: index + 1, rule: "citation", message }]
        : [],
    );
}

function linesWith(text: string, word: string): number[] {
  if (!text.includes(word)) return [];
  return text.split("\n").flatMap((line, index) => (line.includes(word) ? [index + 1] : []));
}
