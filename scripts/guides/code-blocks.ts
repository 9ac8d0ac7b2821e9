/** The kinds of tokens; each is a class of `guides.css`. */
type Kind = "comment" | "string" | "number" | "keyword" | "variable" | "option";

/** Rules of a language: the first alternative that matches at a place is its token. */
type Rules = readonly (readonly [Kind, RegExp])[];

const HASH_COMMENT = /(?<=^|\s)#[^\n]*/;
const DOUBLE_QUOTED = /"(?:[^"\\]|\\.)*"/s;
const SINGLE_QUOTED = /'[^']*'/s;
const NUMBER = /(?<![\w.-])\d+(?:\.\d+)?\b/;

const SHELL: Rules = [
  ["comment", /^#[^\n]*/],
  ["string", SINGLE_QUOTED],
  ["variable", /\$\w+|\$\{[^}]*\}|^\w+(?==)/],
  ["string", DOUBLE_QUOTED],
  ["keyword", /\b(?:ninefold|curl|jq|sudo|docker|systemctl|apt-get|npm)(?= )/],
  ["option", /(?<=\s)--?[A-Za-z][\w-]*/],
];
const SCRIPT: Rules = [
  ["comment", /\/\/[^\n]*|\/\*.*?\*\//s],
  ["string", DOUBLE_QUOTED],
  ["string", /'(?:[^'\\\n]|\\.)*'|`[^`]*`/s],
  [
    "keyword",
    /\b(?:import|from|export|const|let|async|await|function|return|if|else|for|of|new|try|catch|throw|class|default|interface|type|true|false|null|undefined)\b/,
  ],
  ["number", NUMBER],
];
const PYTHON: Rules = [
  ["comment", HASH_COMMENT],
  ["string", DOUBLE_QUOTED],
  ["string", SINGLE_QUOTED],
  [
    "keyword",
    /\b(?:import|from|def|return|if|elif|else|for|in|not|and|or|with|as|try|except|raise|class|True|False|None|async|await)\b/,
  ],
  ["number", NUMBER],
];
const SETTINGS: Rules = [
  ["comment", HASH_COMMENT],
  ["string", DOUBLE_QUOTED],
  ["string", SINGLE_QUOTED],
  ["variable", /\$\w+|\{[\w.$]+\}/],
  ["keyword", /^[ \t]*(?:- )?[\w.-]+(?=:|[ \t]*=|[ \t]+)|^\[+[\w.*"-]+\]+/],
  ["number", NUMBER],
];
const MARKUP: Rules = [
  ["comment", /<!--.*?-->/s],
  ["string", DOUBLE_QUOTED],
  ["keyword", /<\/?[\w-]+|\/?>/],
];

const LANGUAGES: Readonly<Record<string, Rules>> = {
  sh: SHELL,
  js: SCRIPT,
  ts: SCRIPT,
  json: SCRIPT,
  go: SCRIPT,
  php: SCRIPT,
  python: PYTHON,
  toml: SETTINGS,
  ini: SETTINGS,
  yaml: SETTINGS,
  yml: SETTINGS,
  nginx: SETTINGS,
  caddy: SETTINGS,
  dockerfile: SETTINGS,
  html: MARKUP,
};

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** The text of HTML that has no tags. */
export function decoded(html: string): string {
  return html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}

/** A text as HTML. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (sign) => ESCAPES[sign] ?? sign);
}

/** The code as HTML with a `<span>` for each token of the language. Code of an unknown language has none. */
export function highlighted(code: string, language: string): string {
  const rules = LANGUAGES[language];
  if (rules === undefined) return escaped(code);
  const sources = rules.map(([, { source }], at) => `(?<r${at}>${source})`);
  const pattern = new RegExp(sources.join("|"), "gms");
  let html = "";
  let end = 0;
  for (const match of code.matchAll(pattern)) {
    const kind = rules[Object.values(match.groups ?? {}).findIndex((part) => part !== undefined)]?.[0];
    if (match[0] === "" || kind === undefined) continue;
    html += `${escaped(code.slice(end, match.index))}<span class="${kind}">${escaped(match[0])}</span>`;
    end = match.index + match[0].length;
  }
  return html + escaped(code.slice(end));
}

/** The title of a diagram, as Mermaid's `accTitle` gives it to screen readers. */
const TITLE = /^\s*accTitle: (.+)$/m;

/** The title of a diagram. @throws Error if its source has none */
export function diagramTitle(source: string): string {
  const title = TITLE.exec(source)?.[1];
  if (title === undefined) throw new Error(`a diagram has no line "accTitle: …": ${source.slice(0, 80)}`);
  return title.trim();
}

/** The file with the picture of a diagram, from the repository's root. `codegen` draws it. */
export function pictureOf(source: string): string {
  const name = diagramTitle(source)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return `docs/pictures/${name}.svg`;
}

/** The sources of the diagrams of a page. */
export function diagramsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^```mermaid\n(.*?)^```$/gms)].map(([, source = ""]) => source);
}
