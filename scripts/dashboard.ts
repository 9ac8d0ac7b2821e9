// Builds the console and the portal into build/dashboard/ and build/portal/, unless they were already built from the
// same files:
// scripts/dashboard.ts
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
/** The programs for browsers, each a folder of src/pages. */
const PROGRAMS = ["dashboard", "portal"];
/** What the built files depend on; the versions of packages are in package.json. */
const INPUTS = [
  ...PROGRAMS.map((program) => `src/pages/${program}/**/*`),
  "src/verify/*.ts",
  "src/json-text.ts",
  "src/client/generated/*.ts",
  "scripts/dashboard.ts",
  "package.json",
];
/** Contains the result of {@link stampOf} for the files that were built last. */
const STAMP = "stamp";

/** Name, size and time of every input, so that a deleted or older file changes it too. */
function stampOf(): string {
  const files = INPUTS.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(ROOT)]).sort();
  const lines = files.map((file) => {
    const { size, mtimeMs } = statSync(join(ROOT, file));
    return `${file} ${size} ${mtimeMs}`;
  });
  return lines.join("\n");
}

function folderOf(program: string): string {
  return join(ROOT, "build", program);
}

function isBuilt(program: string, stamp: string): boolean {
  const kept = join(folderOf(program), STAMP);
  return existsSync(kept) && readFileSync(kept, "utf8") === stamp;
}

/** A module that names every file, so that a compiled program includes them. */
function listing(names: readonly string[]): string {
  const imports = names.map((name, at) => `import f${at} from "./${name}" with { type: "file" };`);
  const entries = names.map((name, at) => `  { name: ${JSON.stringify(name)}, path: f${at} },`);
  return `${imports.join("\n")}\nexport const FILES = [\n${entries.join("\n")}\n];\n`;
}

async function build(program: string, stamp: string): Promise<void> {
  const out = folderOf(program);
  // Built in a temporary folder and then renamed, because concurrent tests may build it too.
  const part = `${out}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  const { outputs } = await Bun.build({
    entrypoints: [join(ROOT, `src/pages/${program}/index.html`)],
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
  rmSync(out, { recursive: true, force: true });
  try {
    renameSync(part, out);
  } catch (error) {
    // Another process has built the same in the meantime.
    rmSync(part, { recursive: true, force: true });
    if (!isBuilt(program, stamp)) throw error;
  }
}

const stamp = stampOf();
for (const program of PROGRAMS) if (!isBuilt(program, stamp)) await build(program, stamp);
