// Renders the guides into build/guides/, unless they were already rendered from the same files: scripts/guides.ts
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";

const ROOT = join(import.meta.dir, "..");
const OUT = join(ROOT, "build/guides");
const FILE = join(OUT, "guides.txt");
/** Contains the hash of the files that the guides were rendered from. */
const STAMP = join(OUT, "stamp");

/** The index page, which links to the others. */
const INDEX = "docs/README.md";

/** A page of the server, which has its icon: without one, browsers request `/favicon.ico`. */
const ICON_PAGE = "src/pages/docs/page.html";

/** Everything that the guides are rendered from. */
function guideSources(root: string): string[] {
  return [...guideFiles(root), ICON_PAGE, "scripts/guides.ts"];
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

/** Every guide as a page of HTML, by its path below `/docs/guides/`. */
function renderGuides(root: string): Record<string, string> {
  const files = guideFiles(root);
  const names = new Map(files.map((file) => [file, nameOf(file)]));
  const [icon] = /<link rel="icon" [^>]*>/.exec(readFileSync(join(root, ICON_PAGE), "utf8")) ?? [];
  if (icon === undefined) throw new Error(`${ICON_PAGE} has no icon`);
  const context = { names, icon };
  return Object.fromEntries(
    files.map((file) => [nameOf(file), pageOf(file, readFileSync(join(root, file), "utf8"), context)]),
  );
}

/** The path of a page below `/docs/guides/`: empty for the index. */
function nameOf(file: string): string {
  if (file === INDEX) return "";
  return file
    .replace(/^docs\//, "")
    .replace(/\.\w+$/, "")
    .toLowerCase();
}

interface Context {
  /** The paths of the pages, by their files. */
  readonly names: ReadonlyMap<string, string>;
  readonly icon: string;
}

function pageOf(file: string, text: string, { names, icon }: Context): string {
  const up = nameOf(file).includes("/") ? "../" : "";
  const shown = SHOWN_FILES[file];
  const markdown =
    shown === undefined ? text : `# ${shown}\n\n\`\`\`${posix.extname(file).slice(1)}\n${text}\`\`\`\n`;
  const title = /^# (.*)$/m.exec(markdown)?.[1] ?? "Guides";
  const body = Bun.markdown
    .html(markdown.replaceAll(/^<!-- .* -->$/gm, ""))
    // Pictures are not part of the executable.
    .replaceAll(/<p><img [^>]*><\/p>\n/g, "")
    .replaceAll(/<pre><code class="language-mermaid">.*?<\/code><\/pre>\n/gs, "")
    .replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll(
      /<(h[1-6])>(.*?)<\/\1>/gs,
      (_heading, tag: string, inner: string) => `<${tag} id="${anchorOf(inner)}">${inner}</${tag}>`,
    )
    .replaceAll(
      / href="([^"]*)"/g,
      (_link, target: string) => ` href="${addressOf(target, file, up, names)}"`,
    );
  const sections = [...body.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/gs)].map(
    ([, id = "", inner = ""]) => `<li><a href="#${id}">${textOf(inner)}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${textOf(title)} · Ninefold</title>
${icon}
<link rel="stylesheet" href="${up}../guides.css">
</head>
<body>
<nav aria-label="Guides">
<a class="home" href="${up}./">Ninefold guides</a>
<ul>
${sections.join("\n")}
</ul>
<footer><a href="${up}../../docs">API reference</a></footer>
</nav>
<main>
${body}</main>
</body>
</html>
`;
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

const inputs = guideSources(ROOT);
const stamp = Bun.hash(
  inputs.map((file) => `${file}\n${readFileSync(join(ROOT, file), "utf8")}`).join("\n"),
).toString(16);
if (!existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  mkdirSync(OUT, { recursive: true });
  // Concurrent tests may render them too: each file is replaced atomically, the stamp last.
  for (const [path, text] of [
    [FILE, JSON.stringify(renderGuides(ROOT))],
    [STAMP, stamp],
  ] as const) {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
}
