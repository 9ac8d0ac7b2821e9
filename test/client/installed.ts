import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage, COMPILER, COMPILER_ENVIRONMENT } from "../../scripts/packages/build.ts";
import { pack } from "../../scripts/packages/platform.ts";

const root = join(import.meta.dir, "../..");

/** A program of somebody else, in a folder of its own, with the package installed from its tarball. */
export interface Stranger extends Disposable {
  readonly folder: string;
  /** Runs a command there. */
  run(command: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ran>;
  /** Writes a file there. */
  write(name: string, text: string): void;
  /** Type-checks files there, strictly, with a kind of module resolution. Returns what the compiler says. */
  check(resolution: "bundler" | "nodenext", files: readonly string[]): Promise<string>;
}

/** What a command came to. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Node, where there is one: Bun alone is enough for everything else. */
export const NODE = Bun.which("node");
const NPM = Bun.which("npm");

/** The package installed in an empty folder, without a network. */
export async function installPackage(): Promise<Stranger> {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-stranger-"));
  // The test command has installed it once for all tests.
  const installed = process.env["NINEFOLD_INSTALLED"];
  if (installed === undefined) await installInto(folder);
  else cpSync(installed, folder, { recursive: true, verbatimSymlinks: true });
  return {
    folder,
    run: (command, environment = {}) => run(command, folder, environment),
    write: (name, text) => writeFileSync(join(folder, name), text),
    check: (resolution, files) => check(folder, resolution, files),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Builds the package, packs it into an empty folder, and installs it there. */
export async function installInto(folder: string): Promise<void> {
  const tarball = await packInto(folder);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "stranger", private: true, type: "module" }),
  );
  const install =
    NPM === null
      ? [process.execPath, "add", tarball]
      : [NPM, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", tarball];
  await must(install, folder);
  // The types that any program for Node has.
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  for (const name of ["@types/node", "undici-types"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
}

/** The path of the packed package: of the one that the test command has made for all tests, or of a new one in a folder. */
export async function packedPackage(folder: string): Promise<string> {
  const installed = process.env["NINEFOLD_INSTALLED"];
  if (installed === undefined) return packInto(folder);
  const [tarball = "none"] = new Bun.Glob("*.tgz").scanSync(installed);
  return join(installed, tarball);
}

/** Builds the package and packs it into a folder. Returns the path of the tarball. */
async function packInto(folder: string): Promise<string> {
  const built = mkdtempSync(join(tmpdir(), "ninefold-package-"));
  try {
    await buildPackage(root, built);
    return join(folder, pack(built, folder));
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

async function check(
  folder: string,
  resolution: "bundler" | "nodenext",
  files: readonly string[],
): Promise<string> {
  const module = resolution === "bundler" ? "esnext" : "nodenext";
  const compilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable"],
    types: ["node"],
    module,
    moduleResolution: resolution,
    noEmit: true,
    skipLibCheck: false,
  };
  const config = `tsconfig.${resolution}.json`;
  writeFileSync(join(folder, config), JSON.stringify({ compilerOptions, files }));
  return (await run([process.execPath, join(root, COMPILER), "-p", config], folder, COMPILER_ENVIRONMENT))
    .out;
}

async function run(
  command: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>>,
): Promise<Ran> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...environment },
    ...({ stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const),
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, error };
}

async function must(command: readonly string[], cwd: string): Promise<void> {
  const { code, out, error } = await run(command, cwd, {});
  if (code !== 0) throw new Error(`${command.join(" ")}: ${out}${error}`);
}
