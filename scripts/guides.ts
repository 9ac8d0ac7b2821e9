// Renders the guides into build/guides/, unless they were already rendered from the same files: scripts/guides.ts
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { guideSources, renderGuides } from "./guides/render.ts";

const ROOT = join(import.meta.dir, "..");
const OUT = join(ROOT, "build/guides");
const FILE = join(OUT, "guides.txt");
/** Contains the hash of the files that the guides were rendered from. */
const STAMP = join(OUT, "stamp");

const inputs = guideSources(ROOT);
const stamp = Bun.hash(
  inputs.map((file) => `${file}\n${readFileSync(join(ROOT, file), "utf8")}`).join("\n"),
).toString(16);
if (!existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  mkdirSync(OUT, { recursive: true });
  // Concurrent tests may render them too: each file is replaced atomically, the stamp last.
  for (const [path, text] of [
    [FILE, JSON.stringify(renderGuides(ROOT))],
    [STAMP, stamp],
  ] as const) {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
}
