// Updates the golden files, then the client's types and the tables of the guides, which are generated from them:
// bun test/golden/update.ts. Look at the difference before it is committed.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

// In this order: the server imports what the first prepares, and the last reads what is written here.
await import("../../scripts/prepare.ts");
const { renderGoldens } = await import("./goldens.ts");
for (const [name, text] of Object.entries(await renderGoldens())) {
  writeFileSync(join(import.meta.dir, name), text);
  console.log(`wrote test/golden/${name}`);
}
await import("../../codegen/main.ts");
process.exit(0);
