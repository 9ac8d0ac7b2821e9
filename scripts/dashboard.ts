// Builds the console into build/dashboard/, unless it is there already from the same files: scripts/dashboard.ts
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const OUT = join(ROOT, "build/dashboard");
/** What the built files depend on; of packages the versions, which package.json pins. */
const INPUTS = [
  "src/pages/dashboard/**/*",
  "src/verify/*.ts",
  "src/json-text.ts",
  "src/client/generated/*.ts",
  "scripts/dashboard.ts",
  "package.json",
];
/** Holds what {@link stampOf} gave for the files that were built last. */
const STAMP = "stamp";

/** Name, size and time of every input: a file that is deleted or goes back to an older state counts too. */
function stampOf(): string {
  const files = INPUTS.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(ROOT)]).sort();
  const lines = files.map((file) => {
    const { size, mtimeMs } = statSync(join(ROOT, file));
    return `${file} ${size} ${mtimeMs}`;
  });
  return lines.join("\n");
}

function isBuilt(stamp: string): boolean {
  const kept = join(OUT, STAMP);
  return existsSync(kept) && readFileSync(kept, "utf8") === stamp;
}

/** A module that names every file, which a compiled program then carries. */
function listing(names: readonly string[]): string {
  const imports = names.map((name, at) => `import f${at} from "./${name}" with { type: "file" };`);
  const entries = names.map((name, at) => `  { name: ${JSON.stringify(name)}, path: f${at} },`);
  return `${imports.join("\n")}\nexport const FILES = [\n${entries.join("\n")}\n];\n`;
}

async function build(stamp: string): Promise<void> {
  // Beside its place, then moved there whole: tests that run at the same time may build it too.
  const part = `${OUT}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const { outputs } = await Bun.build({
    entrypoints: [join(ROOT, "src/pages/dashboard/index.html")],
    outdir: part,
    target: "browser",
    minify: true,
    splitting: true,
    // Relative addresses: the page works behind a proxy that adds a prefix.
    publicPath: "",
    define: { "process.env.NODE_ENV": '"production"' },
    naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
  });
  const names = outputs.map(({ path }) => path.slice(path.lastIndexOf("/") + 1)).sort();
  writeFileSync(join(part, "files.js"), listing(names));
  writeFileSync(join(part, STAMP), stamp);
  rmSync(OUT, { recursive: true, force: true });
  try {
    renameSync(part, OUT);
  } catch (error) {
    // Another process was a moment faster with the same.
    rmSync(part, { recursive: true, force: true });
    if (!isBuilt(stamp)) throw error;
  }
}

const stamp = stampOf();
if (!isBuilt(stamp)) await build(stamp);
