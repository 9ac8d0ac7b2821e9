/** Markup that is ready: what was text in it has been escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | null | false | readonly Part[];

/** What must not stand in a text as it is: markup's own characters, and what neither XML nor HTML may hold at all. */
const UNSAFE = /[&<>"'\p{Cc}\ufffe\uffff]/gu;
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ "\t": "\t", "\n": "\n", "\r": "\n" },
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

/** Longest word that is looked at as an address. */
const LINK_LENGTH_MAX = 2_000;

/** Plain text as paragraphs, a line a line, in which addresses of http and https are links. Nothing else means anything. */
export function paragraphs(text: string): Markup {
  const blocks = text.split("\n\n").filter((block) => block.trim() !== "");
  return html`${blocks.map((block) => html`<p>${block.trim().split("\n").map(line)}</p>`)}`;
}

function line(text: string, index: number): Markup {
  const words = text.split(" ").map((word, at) => html`${at === 0 ? "" : " "}${linked(word)}`);
  return html`${index === 0 ? null : new Markup("<br>")}${words}`;
}

function linked(word: string): Markup {
  if (!word.startsWith("https://") && !word.startsWith("http://")) return html`${word}`;
  let end = Math.min(word.length, LINK_LENGTH_MAX);
  // What ends a sentence is no part of an address in it.
  while (".,;:!?)'\"".includes(word.charAt(end - 1))) end -= 1;
  const url = word.slice(0, end);
  if (!URL.canParse(url)) return html`${word}`;
  return html`<a href="${url}" rel="nofollow noopener noreferrer">${url}</a>${word.slice(end)}`;
}
