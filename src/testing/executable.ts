import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";

/** How to run Ninefold: a program and its first arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** What the choice of an executable depends on. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The folder of this module, wherever it was installed. */
  readonly moduleFolder: string;
  /** The running runtime's own executable. */
  readonly runtime: string;
  readonly isBun: boolean;
  readonly isWindows: boolean;
}

/**
 * The Ninefold to run: what `NINEFOLD_BINARY` names, else what the package's folder holds (the sources in a checkout
 * under Bun, `dist/ninefold`), else `ninefold` on the PATH.
 *
 * @throws Error that says how to get one.
 */
export function findCommand(from: Surroundings): Command {
  const named = from.environment["NINEFOLD_BINARY"];
  if (named !== undefined && named !== "") {
    if (!isFile(named)) throw new Error(`NINEFOLD_BINARY names ${named}, which is no file.`);
    // A name without a folder would be looked for on the PATH.
    return [resolve(named)];
  }
  const found = inPackage(from) ?? onPath(from);
  if (found === undefined) {
    throw new Error(
      "No Ninefold to start: put the executable ninefold on the PATH, or name it in NINEFOLD_BINARY. In a checkout, scripts/build makes it.",
    );
  }
  return found;
}

function inPackage(from: Surroundings): Command | undefined {
  const root = packageRoot(from.moduleFolder);
  if (root === undefined) return undefined;
  const source = join(root, "src", "main.ts");
  // The sources first: an executable that was built some time ago may not be what is being worked on.
  if (from.isBun && isFile(source)) {
    const settings = `--config=${join(root, "bunfig.toml")}`;
    return [from.runtime, "--no-env-file", "--no-install", settings, source];
  }
  const built = join(root, "dist", executableName(from));
  return isFile(built) ? [built] : undefined;
}

/** The folder of the package that this module belongs to; undefined when it was bundled into something else. */
function packageRoot(start: string): string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (isFile(file) && nameIn(file) === "ninefold") return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** Folders above may hold anything under this name. */
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

function executableName({ isWindows }: Surroundings): string {
  return isWindows ? "ninefold.exe" : "ninefold";
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
