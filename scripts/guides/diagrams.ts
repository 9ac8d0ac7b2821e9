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
