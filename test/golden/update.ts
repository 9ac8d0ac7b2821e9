// Writes the golden files anew: bun test/golden/update.ts. Look at the difference before it is committed.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderGoldens } from "./goldens.ts";

for (const [name, text] of Object.entries(await renderGoldens())) {
  writeFileSync(join(import.meta.dir, name), text);
  console.log(`wrote test/golden/${name}`);
}
process.exit(0);
