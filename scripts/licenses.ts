// Collects the licences of everything in the executable into build/licenses/, unless they were already collected from
// the same files.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { embeddedParts } from "./embedded/parts.ts";

const ROOT = join(import.meta.dir, "..");
const OUT = join(ROOT, "build/licenses");
const FILE = join(OUT, "licenses.txt");
/** Contains the hash of the files that the licences were collected from. */
const STAMP = join(OUT, "stamp");
const INPUTS = [
  "bun.lock",
  "package.json",
  "LICENSE",
  "scripts/licenses.ts",
  ...["bun.txt", "sqlite.txt", "parts.ts"].map((name) => `scripts/embedded/${name}`),
];

const stamp = Bun.hash(INPUTS.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n")).toString(16);
if (!existsSync(STAMP) || readFileSync(STAMP, "utf8") !== stamp) {
  mkdirSync(OUT, { recursive: true });
  const parts = embeddedParts(ROOT).map(({ name, version, license, text }) => ({
    name,
    version,
    license,
    text,
  }));
  // Concurrent tests may collect them too: each file is replaced atomically, the stamp last.
  for (const [path, text] of [
    [FILE, JSON.stringify(parts)],
    [STAMP, stamp],
  ] as const) {
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
}
