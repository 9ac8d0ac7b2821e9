import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Command that runs Ninefold: a program and its first arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Inputs for choosing an executable. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder of this module, wherever it is installed. */
  readonly moduleFolder: string;
  /** The executable of the current runtime. */
  readonly runtime: string;
  readonly isBun: boolean;
  /** `process.platform` and `process.arch`. */
  readonly os: string;
  readonly cpu: string;
  /** Whether a program linked against glibc finds its loader. */
  readonly hasGlibc: boolean;
}

/** Loader paths of glibc; systems with musl have another one. */
const GLIBC_LOADERS = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/** The current process and the folder of the module. */
export function surroundingsOf(moduleUrl: string): Surroundings {
  return {
    environment: process.env,
    moduleFolder: dirname(fileURLToPath(moduleUrl)),
    runtime: process.execPath,
    isBun: process.versions["bun"] !== undefined,
    os: process.platform,
    cpu: process.arch,
    hasGlibc: GLIBC_LOADERS.some(existsSync),
  };
}

/**
 * Finds the Ninefold to run: `NINEFOLD_BINARY`, else the package's folder (the sources in a checkout under Bun,
 * `dist/ninefold`), else the package for this platform, else `ninefold` on the PATH.
 *
 * @throws Error that explains how to install one.
 */
export function findCommand(from: Surroundings): Command {
  const named = from.environment["NINEFOLD_BINARY"];
  if (named !== undefined && named !== "") {
    if (!isFile(named)) throw new Error(`NINEFOLD_BINARY is set to ${named}, which is not a file.`);
    // A name without a folder would be searched for on the PATH.
    return [resolve(named)];
  }
  const found = inPackage(from) ?? inPlatformPackage(from) ?? onPath(from);
  if (found === undefined) {
    throw new Error(
      `No Ninefold to start: ${platformPackages(from)[0]}, which brings the executable for this machine, is not installed. ` +
        "Install again here, with optional dependencies and without a node_modules of another machine; " +
        "or put the executable ninefold on the PATH, or name it in NINEFOLD_BINARY. In a checkout, scripts/build makes it.",
    );
  }
  return found;
}

/** The packages that may contain an executable for this machine, the most likely first. */
function platformPackages({ os, cpu, hasGlibc }: Surroundings): readonly string[] {
  const name = `@ninefold/${os === "win32" ? "windows" : os}-${cpu}`;
  if (os !== "linux") return [name];
  // Some installers ignore the C library and install both. Systems with musl may also have glibc's loader.
  return hasGlibc ? [name, `${name}-musl`] : [`${name}-musl`];
}

function inPlatformPackage(from: Surroundings): Command | undefined {
  const require = createRequire(join(from.moduleFolder, "index.js"));
  for (const name of platformPackages(from)) {
    try {
      return [require.resolve(`${name}/bin/${executableName(from)}`)];
    } catch {
      // Not installed.
    }
  }
  return undefined;
}

function inPackage(from: Surroundings): Command | undefined {
  const root = packageRoot(from.moduleFolder);
  if (root === undefined) return undefined;
  const source = join(root, "src", "main.ts");
  // The sources first: an executable in dist may be older than the sources.
  if (from.isBun && isFile(source)) {
    const settings = `--config=${join(root, "bunfig.toml")}`;
    return [from.runtime, "--no-env-file", "--no-install", settings, source];
  }
  const built = join(root, "dist", executableName(from));
  return isFile(built) ? [built] : undefined;
}

/** Folder of this module's package; undefined when it was bundled. */
function packageRoot(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (isFile(file) && nameIn(file) === "ninefold") return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** Folders above may contain an unrelated package of this name. */
function nameIn(file: string): unknown {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as { name?: unknown } | null)?.name;
  } catch {
    return undefined;
  }
}

function onPath(from: Surroundings): Command | undefined {
  const folders = (from.environment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = folders.map((folder) => join(folder, executableName(from))).find(isExecutable);
  return found === undefined ? undefined : [found];
}

function executableName({ os }: Surroundings): string {
  return os === "win32" ? "ninefold.exe" : "ninefold";
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return isFile(path);
  } catch {
    return false;
  }
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
