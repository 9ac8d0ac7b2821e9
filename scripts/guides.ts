// Renders the guides into build/guides/, unless they were already rendered from the same files: scripts/guides.ts
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { decoded, escaped, highlighted, pictureOf } from "./guides/code-blocks.ts";
import { type OperationEntry, Operations, referenceOf } from "./guides/operations.ts";
import { searchIndex } from "./guides/search.ts";
import { type Group, treeOf } from "./guides/tree.ts";

const ROOT = join(import.meta.dir, "..");
const OUT = join(ROOT, "build/guides");
const FILE = join(OUT, "guides.bin");
/** Contains the hash of the files that the guides were rendered from. */
const STAMP = join(OUT, "stamp");

/** The index page, which links to the others. */
const INDEX = "docs/README.md";

/** A page of the server, which has its icon: without one, browsers request `/favicon.ico`. */
const ICON_PAGE = "src/pages/docs/page.html";

/** All operations of the API, written by `codegen`. */
const OPERATIONS = "src/pages/docs/operations.jsonl";
/** The paths of the indexes, next to those of the pages. */
const [SEARCH, GUIDES_OF] = ["search.json", "operations.json"];

/** Files of Swagger UI, which the executable keeps compressed. */
const UI_FILES = ["swagger-ui-bundle.js", "swagger-ui.css"];

/** Everything that the guides are rendered from. */
function guideSources(root: string): string[] {
  const pictures = [...new Bun.Glob("docs/pictures/*.svg").scanSync(root)].sort();
  const scripts = [...new Bun.Glob("scripts/guides/*.ts").scanSync(root)].sort();
  return [
    ...guideFiles(root),
    ...pictures,
    ...scripts,
    ICON_PAGE,
    OPERATIONS,
    "package.json",
    "scripts/guides.ts",
  ];
}

/** Other files that guides link to, with the titles of their pages. */
const SHOWN_FILES: Readonly<Record<string, string>> = {
  "docs/monitoring-alerts.yml": "Alert rules",
  "docs/monitoring-grafana.json": "Grafana dashboard",
};

/** Files to render: the guides, the pages at the top level, and the other files that guides link to. */
export function guideFiles(root: string): string[] {
  const guides = [...new Bun.Glob("docs/**/*.md").scanSync(root)];
  const top = [...new Bun.Glob("*.md").scanSync(root)];
  return [...guides, ...top, ...Object.keys(SHOWN_FILES)]
    .filter((file) => existsSync(join(root, file)))
    .sort();
}

/** What a page's content is rendered with. */
interface Context {
  readonly root: string;
  /** The paths of the pages, by their files. */
  readonly names: ReadonlyMap<string, string>;
  readonly operations: Operations;
}

/** What all pages share. */
interface Site {
  readonly tree: readonly Group[];
  /** All pages, in the order of the site tree. */
  readonly order: readonly Content[];
  readonly operations: Operations;
  readonly icon: string;
  readonly version: string;
}

/** The files of the site, by their paths: every guide below `/docs/guides/`, and the indexes of search and operations. */
function renderGuides(root: string): Record<string, string> {
  const files = guideFiles(root);
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const operations = new Operations(
    read(OPERATIONS)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  );
  const context = { root, names: new Map(files.map((file) => [file, nameOf(file)])), operations };
  const tree = treeOf(files);
  const order = tree.flatMap((group) => group.files).map((file) => contentOf(file, read(file), context));
  const [icon] = /<link rel="icon" [^>]*>/.exec(read(ICON_PAGE)) ?? [];
  if (icon === undefined) throw new Error(`${ICON_PAGE} has no icon`);
  const { version } = JSON.parse(read("package.json"));
  const site = { tree, order, operations, icon, version };
  return {
    ...Object.fromEntries(order.map((page) => [page.name, pageOf(page, site)])),
    [SEARCH]: searchIndex(order, operations),
    [GUIDES_OF]: JSON.stringify(guidesOf(order, operations)),
  };
}

/** The guides of each operation, as titles and paths, by the operation's id. */
function guidesOf(pages: readonly Content[], operations: Operations): Record<string, [string, string][]> {
  const found: Record<string, [string, string][]> = {};
  for (const { name, title, body } of pages) {
    for (const { id } of operations.ofPage(body)) {
      found[id] = [...(found[id] ?? []), [title, name]];
    }
  }
  return found;
}

/** The path of a page below `/docs/guides/`: empty for the index. */
function nameOf(file: string): string {
  if (file === INDEX) return "";
  return file
    .replace(/^docs\//, "")
    .replace(/\.\w+$/, "")
    .toLowerCase();
}

/** Names of languages that a reader sees above a block of code. */
const LANGUAGE_NAMES: Readonly<Record<string, string>> = {
  sh: "Shell",
  ts: "TypeScript",
  js: "JavaScript",
  python: "Python",
  go: "Go",
  php: "PHP",
};

/** A page, before the navigation around it. */
interface Content {
  readonly file: string;
  readonly name: string;
  readonly title: string;
  readonly body: string;
}

/** The content of a file as HTML. Anchors are those of code hosts, and links lead to the pages of this site. */
function contentOf(file: string, text: string, context: Context): Content {
  const up = upOf(nameOf(file));
  const shown = SHOWN_FILES[file];
  const markdown =
    shown === undefined ? text : `# ${shown}\n\n\`\`\`${posix.extname(file).slice(1)}\n${text}\`\`\`\n`;
  const title = textOf(/^# (.*)$/m.exec(markdown)?.[1] ?? "Guides");
  const body = Bun.markdown
    .html(markdown.replaceAll(/^<!-- .* -->$/gm, ""))
    // Screenshots are not part of the executable.
    .replaceAll(/<p><img [^>]*><\/p>\n/g, "")
    .replaceAll(/<pre><code class="language-mermaid">(.*?)<\/code><\/pre>\n/gs, (_block, code: string) =>
      figureOf(decoded(code), context.root),
    )
    .replaceAll(/<pre><code(?: class="language-(\w+)")?>(.*?)<\/code><\/pre>/gs, (_block, language, code) =>
      blockOf(language ?? "text", decoded(code)),
    )
    .replaceAll(EXAMPLES, tabsOf)
    .replaceAll(
      /<(h[1-6])>(.*?)<\/\1>/gs,
      (_heading, tag: string, inner: string) => `<${tag} id="${anchorOf(inner)}">${inner}</${tag}>`,
    )
    .replaceAll(
      / href="([^"]*)"/g,
      (_link, target: string) => ` href="${addressOf(target, file, up, context.names)}"`,
    )
    // A table without a head is written with an empty one.
    .replaceAll(/<th([^>]*)><\/th>/g, "<td$1></td>")
    .replaceAll(/<table>(.*?)<\/table>/gs, '<div class="wide" tabindex="0"><table>$1</table></div>');
  return { file, name: nameOf(file), title, body: linkedOperations(body, up, context.operations) };
}

/** A block of code, which scrolls by keyboard. */
function blockOf(language: string, code: string): string {
  const label = LANGUAGE_NAMES[language] ?? language;
  return `<pre tabindex="0" data-language="${escaped(label)}"><code class="language-${language}">${highlighted(code, language)}</code></pre>`;
}

/** A diagram, drawn from its source. @throws Error if its picture is missing */
function figureOf(source: string, root: string): string {
  return `<figure class="wide" tabindex="0">${readFileSync(join(root, pictureOf(source)), "utf8").trim()}</figure>\n`;
}

/** The page with links to the API reference from each operation that its text names. */
function linkedOperations(body: string, up: string, operations: Operations): string {
  return body.replaceAll(
    /<a [^>]*>.*?<\/a>|<pre.*?<\/pre>|<h[1-6].*?<\/h[1-6]>|<code>([^<]*)<\/code>/gs,
    (whole, code?: string) => {
      const entry = code === undefined ? undefined : operations.mentioned(decoded(code));
      return entry === undefined ? whole : `<a href="${up}../../${referenceOf(entry)}">${whole}</a>`;
    },
  );
}

/** The whole page: the site tree, the content, the operations that it uses, and the pages before and after it. */
function pageOf(content: Content, site: Site): string {
  const { name, title, body } = content;
  const up = upOf(name);
  const at = site.order.indexOf(content);
  const used = site.operations.ofPage(body);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Ninefold</title>
${site.icon}
<link rel="stylesheet" href="${up}../guides.css">
<script defer src="${up}../guides.js"></script>
</head>
<body>
<header>
<a class="skip" href="#content">Skip to content</a>
<a class="home" href="${up}./">Ninefold guides</a>
<a class="menu" href="#contents">Contents</a>
<a href="${up}../../docs">API reference</a>
</header>
<nav id="contents" aria-label="Guides">
<a class="close" href="#content">Close</a>
${site.tree.map((group) => groupOf(group, content, site)).join("\n")}
<p>Ninefold ${site.version}</p>
</nav>
<main id="content">
${body}${used.length === 0 ? "" : operationList(used, up)}<nav class="turn" aria-label="Previous and next page">
${turn("prev", "Previous", site.order[at - 1], up)}${turn("next", "Next", site.order[at + 1], up)}</nav>
</main>
</body>
</html>
`;
}

/** A group of the site tree, open where it has the page, with the page's sections below it. */
function groupOf({ title, files }: Group, current: Content, site: Site): string {
  const up = upOf(current.name);
  const items = files.map((file) => {
    const page = site.order.find((one) => one.file === file);
    if (page === undefined) throw new Error(`the site tree has ${file}, which is no page`);
    const address = `${up}${page.name === "" ? "./" : page.name}`;
    if (page !== current) return `<li><a href="${address}">${page.title}</a></li>`;
    const sections = [...page.body.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/gs)].map(
      ([, id = "", inner = ""]) => `<li><a href="#${id}">${textOf(inner)}</a></li>`,
    );
    const below = sections.length === 0 ? "" : `\n<ul>\n${sections.join("\n")}\n</ul>\n`;
    return `<li><a href="${address}" aria-current="page">${page.title}</a>${below}</li>`;
  });
  const open = files.includes(current.file) ? " open" : "";
  return `<details${open}><summary>${title}</summary>\n<ul>\n${items.join("\n")}\n</ul></details>`;
}

function operationList(entries: readonly OperationEntry[], up: string): string {
  const items = entries.map(
    (entry) =>
      `<li><a href="${up}../../${referenceOf(entry)}"><code>${entry.method} ${escaped(entry.path)}</code></a> ${escaped(entry.summary)}</li>`,
  );
  return `<section class="operations" aria-labelledby="operations-of-this-page">
<h2 id="operations-of-this-page">Operations of this page</h2>
<ul>
${items.join("\n")}
</ul>
</section>
`;
}

function turn(rel: string, label: string, page: Content | undefined, up: string): string {
  if (page === undefined) return "";
  const address = `${up}${page.name === "" ? "./" : page.name}`;
  return `<a rel="${rel}" href="${address}"><small>${label}</small> ${page.title}</a>\n`;
}

/** The way from a page up to `/docs/guides/`. */
function upOf(name: string): string {
  return name.includes("/") ? "../" : "";
}

/** A block of commands with the same example in other languages, each of which can be opened. */
const EXAMPLES =
  /(<pre [^>]*><code class="language-sh">(?:(?!<\/pre>).)*<\/pre>)\s*((?:<details>\s*<summary>[^<]*<\/summary>\s*<pre (?:(?!<\/pre>).)*<\/pre>\s*<\/details>\s*)+)/gs;
const LANGUAGE = /<summary>([^<]*)<\/summary>\s*(<pre .*?<\/pre>)/gs;

/** The languages of an example as tabs, which need no script: the chosen radio button shows its block. */
function tabsOf(_block: string, commands: string, others: string, offset: number): string {
  const languages = [...others.matchAll(LANGUAGE)].map(([, title = "", text = ""]) => [title, text] as const);
  const tabs = [["curl", commands] as const, ...languages].map(
    ([title, text], at) =>
      `<input type="radio" name="example-${offset}" id="example-${offset}-${at}"${at === 0 ? " checked" : ""}><label for="example-${offset}-${at}">${title}</label>${text}`,
  );
  return `<div class="tabs" role="group" aria-label="Languages of the example">\n${tabs.join("\n")}\n</div>\n`;
}

/** The anchor of a heading, as code hosts create it. */
function anchorOf(heading: string): string {
  return textOf(heading)
    .replaceAll(/&\w+;/g, "")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** The text of rendered Markdown, or of a Markdown heading. */
function textOf(html: string): string {
  return html.replaceAll(/<[^>]*>|`/g, "");
}

/** The address of a link on a page. @throws Error for a link to a file that is not served */
function addressOf(target: string, file: string, up: string, names: ReadonlyMap<string, string>): string {
  if (/^(https?:|mailto:|#)/.test(target)) return target;
  const [path = "", anchor] = target.split("#");
  const linked = posix.normalize(posix.join(posix.dirname(file), path));
  const name = names.get(linked);
  if (name === undefined) throw new Error(`${file} links to ${target}, which the guides do not have`);
  return `${up}${name === "" ? "./" : name}${anchor === undefined ? "" : `#${anchor}`}`;
}

/**
 * The files as one compressed file: a line of JSON with the start and end of each after that line, then their texts.
 * Together they compress to half of what they would alone, because every page has the site tree.
 */
function packed(files: Readonly<Record<string, string>>): Uint8Array {
  const texts = Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const);
  let start = 0;
  const places = texts.map(([path, { length }]) => {
    const end = start + length;
    const place = [path, [start, end]] as const;
    start = end;
    return place;
  });
  const index = Buffer.from(`${JSON.stringify(Object.fromEntries(places))}\n`);
  return compressed(Buffer.concat([index, ...texts.map(([, text]) => text)]));
}

function compressed(bytes: Uint8Array<ArrayBuffer>): Uint8Array {
  return Bun.zstdCompressSync(bytes, { level: 19 });
}

const inputs = guideSources(ROOT);
const stamp = Bun.hash(
  inputs.map((file) => `${file}\n${readFileSync(join(ROOT, file), "utf8")}`).join("\n"),
).toString(16);
if (!existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  mkdirSync(OUT, { recursive: true });
  const ui = UI_FILES.map((name) => {
    const bytes = new Uint8Array(readFileSync(join(ROOT, "node_modules/swagger-ui-dist", name)));
    return [join(OUT, `${name}.bin`), compressed(bytes)] as const;
  });
  // Concurrent tests may render them too: each file is replaced atomically, the stamp last.
  for (const [path, text] of [...ui, [FILE, packed(renderGuides(ROOT))] as const, [STAMP, stamp] as const]) {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
}
