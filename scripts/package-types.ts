// Writes the client's types and table of operations anew from the API's document: bun scripts/package-types.ts
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatedFiles } from "./packages/formatted.ts";
import { GENERATED_FOLDER } from "./packages/generate.ts";

const root = join(import.meta.dir, "..");
const files = generatedFiles(root);
rmSync(join(root, GENERATED_FOLDER), { recursive: true, force: true });
mkdirSync(join(root, GENERATED_FOLDER), { recursive: true });
for (const [name, text] of files) writeFileSync(join(root, GENERATED_FOLDER, name), text);
console.log(`wrote ${files.size} files to ${GENERATED_FOLDER}`);
