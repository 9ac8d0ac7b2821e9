// Writes the client's types and table of operations anew from the API's document, and the guides' tables of fields: bun scripts/package-types.ts
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import "./guide-fields.ts";
import { generatedFile } from "./packages/formatted.ts";
import { GENERATED_FILE } from "./packages/generate.ts";

const root = join(import.meta.dir, "..");
writeFileSync(join(root, GENERATED_FILE), generatedFile(root));
console.log(`wrote ${GENERATED_FILE}`);
