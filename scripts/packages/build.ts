import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PLATFORMS } from "../releases/platforms.ts";
import { platformPackage } from "./platform.ts";

/** The TypeScript compiler, from the root of the repository. */
export const COMPILER = "node_modules/typescript/bin/tsc";

/**
 * It runs for seconds and then ends: collecting garbage at five times the live memory instead of at twice saves a quarter of its
 * processor time.
 */
export const COMPILER_ENVIRONMENT = { GOGC: "400" };

/** The parts of the repository's package.json that are used. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly files: readonly string[];
  /** Entries with their sources, `"./client": "./src/client/index.ts"`. */
  readonly exports: Readonly<Record<string, string>>;
}

/** Build options of an entry of the package. */
interface Entry {
  /** Packages whose ambient types the code can use; none for code that runs everywhere. */
  readonly types: readonly string[];
  /** Bundled into one file with its dependencies, so that the package has none. */
  readonly bundled?: boolean;
  /** Further sources, compiled with it: the compiler reads the libraries' types only once. */
  readonly alongside?: readonly string[];
}

/** What npm runs as `ninefold`. */
const LAUNCHER = { source: "./src/testing/launcher.ts", built: "testing/launcher.js" };

const ENTRIES: Readonly<Record<string, Entry>> = {
  "./client": { types: [] },
  "./testing": { types: ["node"], alongside: [LAUNCHER.source] },
  "./verify": { types: [], bundled: true },
};

/** The package itself exports nothing. CommonJS, because a missing name of an ES module fails before its code runs. */
const BARE = [
  ["Ninefold", "ninefold/client"],
  ["verifyDelivery", "ninefold/client"],
  ["startNinefold", "ninefold/testing"],
  ["verifyReceipt", "ninefold/verify"],
] as const;

/** Features that Node 20 and browsers have. */
const LIBRARIES = ["ES2022", "DOM", "DOM.Iterable", "DOM.AsyncIterable"];

/** Builds the npm package into a folder, which is emptied first. @throws Error when an entry does not compile. */
export async function buildPackage(root: string, folder: string): Promise<void> {
  const manifest: Manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, source] of Object.entries(manifest.exports)) {
    const entry = ENTRIES[name];
    if (entry === undefined) throw new Error(`scripts/packages/build.ts does not say how to build ${name}`);
    compile(root, folder, source, entry);
    if (entry.bundled) await bundle(root, folder, source);
  }
  chmodSync(join(folder, LAUNCHER.built), 0o755);
  writeBare(folder);
  await finishDeclarations(folder);
  await writeCommonJs(root, folder, manifest);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published(manifest), null, 2)}\n`);
  writeFileSync(join(folder, "README.md"), readme(readFileSync(join(root, "docs/client.md"), "utf8")));
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
}

/** The entry of `import "ninefold"`: the compiler and the runtime report which module to import instead. */
function writeBare(folder: string): void {
  const instead = BARE.map(([name, entry]) => `import { ${name} } from "${entry}"`).join(", ");
  const message = `There is nothing in "ninefold" itself. Write one of: ${instead}.`;
  const names = BARE.map(([name]) => `exports.${name} = undefined;\n`).join("");
  writeFileSync(join(folder, "bare.cjs"), `${names}throw new Error(${JSON.stringify(message)});\n`);
  const types = BARE.map(
    ([name, entry]) =>
      `/** @deprecated Import it from "${entry}". */\nexport declare const ${name}: { readonly 'Import it from "${entry}"': never };\n`,
  );
  writeFileSync(join(folder, "bare.d.cts"), types.join(""));
}

/** Type-checks an entry against the platform's types only, and writes its JavaScript and declarations. */
function compile(root: string, folder: string, source: string, entry: Entry): void {
  const scratch = mkdtempSync(join(tmpdir(), "ninefold-package-"));
  try {
    const config = join(scratch, "tsconfig.json");
    const files = [source, ...(entry.alongside ?? [])].map((file) => join(root, file));
    writeFileSync(config, JSON.stringify({ compilerOptions: optionsOf(root, folder, entry), files }));
    const command = [process.execPath, join(root, COMPILER), "-p", config];
    const env = { ...process.env, ...COMPILER_ENVIRONMENT };
    const { success, stdout } = Bun.spawnSync(command, { env, stderr: "inherit" });
    if (!success) throw new Error(`${source} does not compile as a part of the package:\n${stdout}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function optionsOf(root: string, folder: string, entry: Entry): object {
  return {
    target: "ES2022",
    module: "ESNext",
    moduleResolution: "bundler",
    lib: LIBRARIES,
    types: entry.types,
    typeRoots: [join(root, "node_modules/@types")],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    rewriteRelativeImportExtensions: true,
    declaration: true,
    emitDeclarationOnly: entry.bundled === true,
    rootDir: join(root, "src"),
    outDir: folder,
  };
}

async function bundle(root: string, folder: string, source: string): Promise<void> {
  const outdir = join(folder, source.replace(/^\.\/src\//, "").replace(/\/[^/]+$/, ""));
  // Bundled code is distributed under its authors' licences.
  const licences = ["ed25519", "hashes"].map((name) =>
    readFileSync(join(root, `node_modules/@noble/${name}/LICENSE`), "utf8"),
  );
  writeFileSync(join(outdir, "LICENSES.txt"), licences.join("\n---\n\n"));
  await Bun.build({ entrypoints: [join(root, source)], outdir, target: "browser", format: "esm" });
  withoutPlaces(join(outdir, "index.js"));
}

/** A line with the path of a bundled file, of which only the part within the repository remains. */
const PLACE = /^\/\/ (?:\S*?\/)?((?:src|node_modules)\/\S+)$/gm;

/** Folder of the entries as CommonJS, for `require`: test runners such as Jest load no ES modules without a flag. */
const COMMON_JS = "cjs";
/** The entries that have this form. */
const REQUIRED_ENTRY = "./client";

async function writeCommonJs(root: string, folder: string, { exports }: Manifest): Promise<void> {
  const source = exports[REQUIRED_ENTRY] ?? "";
  const outdir = join(folder, COMMON_JS, "client");
  // The declarations are CommonJS by the manifest above them.
  cpSync(join(folder, "client"), outdir, { recursive: true, filter: (path) => !path.endsWith(".js") });
  writeFileSync(join(folder, COMMON_JS, "package.json"), '{ "type": "commonjs" }\n');
  await Bun.build({ entrypoints: [join(root, source)], outdir, target: "node", format: "cjs" });
  withoutPlaces(join(outdir, "index.js"));
}

/** The bundler notes where each part was, which depends on the folder that it ran in. */
function withoutPlaces(file: string): void {
  writeFileSync(file, readFileSync(file, "utf8").replace(PLACE, "// $1"));
}

/** Declarations import each other by the names of the sources. */
async function finishDeclarations(folder: string): Promise<void> {
  for await (const path of new Bun.Glob("**/*.d.ts").scan(folder)) {
    const file = join(folder, path);
    const text = readFileSync(file, "utf8").replace(/(from |import\()"(\.[^"]*)\.ts"/g, '$1"$2.js"');
    writeFileSync(file, text);
  }
}

/** The manifest of the package. npm installs the platform's package, which contains the executable. */
function published({ name, version, description, license, files, exports }: Manifest): object {
  const built = (source: string): string => source.replace(/^\.\/src\//, "./").replace(/\.ts$/, "");
  return {
    name,
    version,
    description,
    license,
    type: "module",
    sideEffects: ["./bare.cjs"],
    engines: { node: ">=20" },
    bin: { ninefold: LAUNCHER.built },
    optionalDependencies: Object.fromEntries(
      PLATFORMS.map((platform) => [platformPackage(platform), version]),
    ),
    exports: {
      ".": { types: "./bare.d.cts", default: "./bare.cjs" },
      ...Object.fromEntries(
        Object.entries(exports).map(([entry, source]) => [
          entry,
          {
            ...commonJs(entry, built(source)),
            types: `${built(source)}.d.ts`,
            default: `${built(source)}.js`,
          },
        ]),
      ),
      "./package.json": "./package.json",
    },
    files: [...files, COMMON_JS, "bare.*"],
  };
}

/** The condition of `require`, which comes before the others. */
function commonJs(entry: string, built: string): object {
  const path = built.replace("./", `./${COMMON_JS}/`);
  return entry === REQUIRED_ENTRY ? { require: { types: `${path}.d.ts`, default: `${path}.js` } } : {};
}

/** The guide of the client, without links to pages that are not in the package. */
function readme(page: string): string {
  return page.replace(/\[([^\]]+)\]\((?!https?:)[^)]*\)/g, "$1");
}

/** Builds the wheel and the source distribution of the Python package into a folder. Returns the names of the files. @throws Error */
export function buildPython(root: string, folder: string, python = Bun.which("python3")): string[] {
  if (python === null) {
    console.error("the Python package is not built: install python3 (3.9 or later), then run this again");
    return [];
  }
  const { success, stdout, stderr } = Bun.spawnSync([python, join(root, "python/build_backend.py"), folder]);
  if (!success) throw new Error(`the Python package could not be built:\n${stdout}${stderr}`);
  return stdout.toString().trim().split("\n");
}
