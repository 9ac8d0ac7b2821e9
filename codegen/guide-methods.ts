import type { Document } from "./document.ts";
import { signatureOf } from "./method-text.ts";
import { objectsOf } from "./methods.ts";

/** A marked block: `<!-- methods -->` up to `<!-- /methods -->`. */
const BLOCK = /^<!-- methods -->\n(?:.*?\n)??<!-- \/methods -->$/gms;

/** A page with the table of the client's methods in its marked blocks. */
export function withMethods(page: string, document: Document): string {
  return page.replaceAll(BLOCK, () => {
    const rows = objectsOf(document).map(({ path, methods }) => {
      const object = ["nf", path === "meter" ? "meter(id)" : path].filter((part) => part !== "").join(".");
      const names = methods.map((method) => `\`${signatureOf(method)}\``);
      return names.length === 0 ? "" : `| \`${object}\` | ${names.join(", ")} |\n`;
    });
    return `<!-- methods -->\n\n| object | methods |\n|---|---|\n${rows.join("")}\n<!-- /methods -->`;
  });
}
