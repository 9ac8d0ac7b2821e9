import { renderMermaidSVG } from "beautiful-mermaid";
import { diagramTitle, escaped } from "../scripts/guides/code-blocks.ts";

/** Lines that only describe a diagram, or that only its other renderers read. */
const NOT_DRAWN = /^\s*(?:accTitle|accDescr):.*\n|^%%.*\n/gm;

/**
 * The picture of a diagram, to be placed in a page: its colors are the variables of `guides.css`, it has no styles of
 * its own, which the pages' policy forbids, and its title is what a screen reader says.
 */
export function drawing(source: string): string {
  const svg = renderMermaidSVG(source.replaceAll(NOT_DRAWN, ""), {
    padding: 8,
    nodeSpacing: 20,
    layerSpacing: 36,
  });
  const [, width = "0", height = "0"] = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(svg) ?? [];
  const title = diagramTitle(source);
  const id = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const content = svg
    .replace(/^<svg[^>]*>/, "")
    .replace(/<style>.*?<\/style>\n?/s, "")
    .replaceAll(/ (?:data-[\w-]+|class)="[^"]*"/g, "")
    .replaceAll(/(?<=[" ,])-?\d+\.\d+/g, (number) => String(Math.round(Number(number) * 10) / 10))
    .replaceAll(/\b(arrowhead(?:-start)?)\b/g, `${id}-$1`);
  const [w, h] = [Math.ceil(Number(width)), Math.ceil(Number(height))];
  return `<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" aria-labelledby="${id}" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">
<title id="${id}">${escaped(title)}</title>${content.trimEnd()}
`;
}
