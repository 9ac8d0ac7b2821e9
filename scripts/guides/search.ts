import { decoded } from "./code-blocks.ts";
import { type Operations, referenceOf } from "./operations.ts";

/** A rendered page, as the index reads it. */
export interface IndexedPage {
  /** The path below `/docs/guides/`. */
  readonly name: string;
  readonly title: string;
  /** The HTML of its content. */
  readonly body: string;
}

/** Words that nearly every section has. */
const COMMON = new Set(
  "the and for that with from this are its not has can you your which have but all each more was been when will than into one only also they their them then there these those without".split(
    " ",
  ),
);
const WORD = /[\p{L}\p{N}][\p{L}\p{N}_]+/gu;
/** Longer ones are secrets and ids of examples. */
const LONGEST_WORD = 24;

/**
 * The search index: `pages` are titles with addresses relative to the server's root, `sections` are [page, anchor,
 * heading], and each line of `words` is a word with the sections that contain it, as differences in base 36.
 */
export function searchIndex(pages: readonly IndexedPage[], operations: Operations): string {
  const titles: [title: string, address: string][] = [];
  const sections: [page: number, anchor: string, heading: string][] = [];
  const words = new Map<string, number[]>();
  const add = (page: number, anchor: string, heading: string, text: string): void => {
    const section = sections.push([page, anchor, heading]) - 1;
    for (const word of wordsOf(`${heading} ${text}`)) {
      const list = words.get(word);
      if (list === undefined) words.set(word, [section]);
      else list.push(section);
    }
  };
  for (const { name, title, body } of pages) {
    const page = titles.push([title, `docs/guides/${name}`]) - 1;
    for (const { anchor, heading, text } of sectionsOf(body, title)) add(page, anchor, heading, text);
  }
  for (const entry of operations.all) {
    const page = titles.push([`${entry.method} ${entry.path}`, referenceOf(entry)]) - 1;
    add(
      page,
      "",
      entry.summary,
      `${entry.method} ${entry.path} ${entry.id.replaceAll(".", " ")} ${entry.area}`,
    );
  }
  const lines = [...words]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, list]) => `${word} ${deltas(list)}`);
  return JSON.stringify({ pages: titles, sections, words: lines.join("\n") });
}

/** A page in parts: the text before its first section, and each section. */
function sectionsOf(body: string, title: string): { anchor: string; heading: string; text: string }[] {
  const parts = body.split(/(?=<h[23] id=")/);
  return parts.map((part) => {
    const [whole = "", anchor = "", heading = ""] = /^<h[23] id="([^"]*)">(.*?)<\/h[23]>/s.exec(part) ?? [];
    return {
      anchor,
      heading: anchor === "" ? title : textOf(heading),
      text: textOf(part.slice(whole.length)),
    };
  });
}

function textOf(html: string): string {
  return decoded(html.replaceAll(/<[^>]*>/g, " "))
    .replaceAll(/\s+/g, " ")
    .trim();
}

function wordsOf(text: string): Set<string> {
  const found = text.toLowerCase().match(WORD) ?? [];
  return new Set(found.filter((word) => word.length <= LONGEST_WORD && !COMMON.has(word)));
}

function deltas(list: readonly number[]): string {
  return list.map((section, at) => (section - (list[at - 1] ?? 0)).toString(36)).join(" ");
}
