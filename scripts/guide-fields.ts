// Generates the tables of fields and of the client's methods in the guides from the API's document: bun scripts/guide-fields.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withFields } from "./guides/fields.ts";
import { withMethods } from "./guides/methods.ts";
import type { Document } from "./packages/document.ts";

const root = join(import.meta.dir, "..");
const document: Document = await Bun.file(join(root, "test/golden/openapi.json")).json();
for (const page of new Bun.Glob("docs/**/*.md").scanSync(root)) {
  const path = join(root, page);
  const text = readFileSync(path, "utf8");
  const fresh = withMethods(withFields(text, document), document);
  if (fresh === text) continue;
  writeFileSync(path, fresh);
  console.log(`wrote ${page}`);
}
