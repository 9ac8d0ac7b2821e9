// Generates the client's types, table of operations and methods from the API's document, and the tables of the guides: bun scripts/package-types.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import "./guide-fields.ts";
import { generatedFiles } from "./packages/formatted.ts";

const root = join(import.meta.dir, "..");
for (const [path, text] of Object.entries(generatedFiles(root))) {
  writeFileSync(join(root, path), text);
  console.log(`wrote ${path}`);
}
