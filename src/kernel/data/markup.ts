/** Markup in which all text is already escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | null | false | readonly Part[];

/** Characters to escape: those of the markup itself, and those that XML and HTML forbid. */
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
 * A template of HTML, SVG or XML. Values are escaped as text, also within double-quoted attributes, unless they are markup.
 * Lists are joined; null and false are omitted.
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
  return text.toWellFormed().replace(UNSAFE, (character) => ENTITIES[character] ?? REPLACEMENT);
}

/** Characters of a link: browsers and servers do not agree on longer addresses. */
const LINK_LENGTH_MAX = 2_000;
/** Maximum number of links in a text: limits the markup that a text of short addresses grows to. */
export const LINKS_MAX = 100;
/** Punctuation after an address, which does not belong to it. */
const SENTENCE_END = ".,;:!?)'\"";

/**
 * Finds the first {@link LINKS_MAX} links of a plain text in one pass. Returns the start and the end of each, alternating, as
 * UTF-16 offsets. A link is a word that begins with `https://` or `http://`.
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

/** Renders plain text as paragraphs with line breaks and links. No other syntax is interpreted. */
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
