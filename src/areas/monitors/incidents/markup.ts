/** Markup that is ready: what was text in it has been escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | null | false | readonly Part[];

/** What must not stand in a text as it is: markup's own characters, and what neither XML nor HTML may hold at all. */
const UNSAFE = /[&<>"'\p{Cc}\ufffe\uffff]/gu;
const ENTITIES: Readonly<Record<string, string>> = {
  "\t": "\t",
  "\n": "\n",
  "\r": "\n",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const REPLACEMENT = "\ufffd";

/**
 * A template of HTML, SVG or XML: every value is text and is escaped, also for attributes in double quotes, unless it is
 * markup itself. Lists are joined; null and false are nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Part[]): Markup {
  let text = strings[0] ?? "";
  for (const [index, value] of values.entries()) text += textOf(value) + (strings[index + 1] ?? "");
  return new Markup(text);
}

function textOf(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return part.map(textOf).join("");
  return part === null || part === false ? "" : escaped(String(part));
}

function escaped(text: string): string {
  return text.toWellFormed().replace(UNSAFE, (one) => ENTITIES[one] ?? REPLACEMENT);
}

/** Longest link: beyond it browsers and servers disagree about addresses. */
const LINK_LENGTH_MAX = 2_000;
/** Links of one text: more than a reader follows, and a limit for what a text of short addresses grows to. */
export const LINKS_MAX = 100;
/** What ends a sentence is no part of an address in it. */
const SENTENCE_END = ".,;:!?)'\"";

/**
 * Where the first {@link LINKS_MAX} links of a plain text are, found in one pass: the beginning and the end of each, in
 * turn, as UTF-16 offsets. A link is a word that begins with `https://` or `http://`.
 */
export function linksOf(text: string): number[] {
  const links: number[] = [];
  for (const { 0: word, index } of text.matchAll(/\S+/g)) {
    if (!word.startsWith("https://") && !word.startsWith("http://")) continue;
    let length = Math.min(word.length, LINK_LENGTH_MAX);
    while (SENTENCE_END.includes(word.charAt(length - 1))) length -= 1;
    if (!URL.canParse(word.slice(0, length))) continue;
    links.push(index, index + length);
    if (links.length === 2 * LINKS_MAX) break;
  }
  return links;
}

/** Plain text as paragraphs, line by line, with its links. Nothing else in it has a meaning. */
export function paragraphs(text: string, links: readonly number[] = linksOf(text)): Markup {
  const blocks = linked(text, links)
    .split("\n\n")
    .map((block) => block.trim())
    .filter((block) => block !== "");
  return new Markup(blocks.map((block) => `<p>${block.replaceAll("\n", "<br>")}</p>`).join(""));
}

function linked(text: string, links: readonly number[]): string {
  let result = "";
  let end = 0;
  for (let at = 0; at < links.length; at += 2) {
    const start = links[at] ?? 0;
    result += escaped(text.slice(end, start));
    end = links[at + 1] ?? start;
    const url = text.slice(start, end);
    result += html`<a href="${url}" rel="nofollow noopener noreferrer">${url}</a>`.text;
  }
  return result + escaped(text.slice(end));
}
