// Generates the client's types, table of operations and methods from the API's document, and the tables of fields and methods and the
// list of errors in the guides, and their examples in other languages: bun codegen/main.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Document } from "./document.ts";
import { generatedFiles } from "./formatted.ts";
import { withErrors } from "./guide-errors.ts";
import { withFields } from "./guide-fields.ts";
import { withMethods } from "./guide-methods.ts";
import { withLanguages } from "./languages/pages.ts";
import { staleDiagrams, stamped } from "./stale-diagrams.ts";

const root = join(import.meta.dir, "..");
for (const [path, text] of Object.entries(generatedFiles(root))) {
  writeFileSync(join(root, path), text);
  console.log(`wrote ${path}`);
}
const document: Document = await Bun.file(join(root, "test/golden/openapi.json")).json();
for (const page of new Bun.Glob("docs/**/*.md").scanSync(root)) {
  const path = join(root, page);
  const text = readFileSync(path, "utf8");
  const fresh = withLanguages(
    page,
    withErrors(withMethods(withFields(text, document), document), document),
    document,
  );
  if (fresh === text) continue;
  writeFileSync(path, fresh);
  console.log(`wrote ${page}`);
}
// The renderer is only loaded if a diagram has changed.
for (const { path, source } of staleDiagrams(root)) {
  const { drawing } = await import("./diagrams.ts");
  writeFileSync(join(root, path), stamped(drawing(source), source));
  console.log(`wrote ${path}`);
}
