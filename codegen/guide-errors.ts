import type { Document } from "./document.ts";

/** A marked block with a section for each error code, from `<!-- errors -->` to `<!-- /errors -->`. */
const SECTIONS = /^<!-- errors -->\n(?:.*?\n)??<!-- \/errors -->$/gms;

/** A page whose marked block explains every error code of the API's document. */
export function withErrors(page: string, { components }: Document): string {
  return page.replaceAll(SECTIONS, () => {
    const sections = Object.entries(components.responses).map(([code, response]) => {
      const meaning = response.description.replace(/^`[^`]*`: /, "");
      return `### ${code}\n\n**${response["x-status"]}** ${meaning}\n\n**What to do**: ${response["x-remedy"]}\n\n`;
    });
    return `<!-- errors -->\n\n${sections.join("")}<!-- /errors -->`;
  });
}
