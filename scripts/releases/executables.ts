import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packPlatform } from "../packages/platform.ts";
import { buildArtifact } from "./build.ts";
import { hasDebianPackage, packDebian } from "./debian.ts";
import { ownPlatform, type Platform } from "./platforms.ts";
import { obtainRuntime, type Run } from "./runtime.ts";

/** The used parts of package.json. */
export interface ReleaseManifest {
  readonly version: string;
  readonly license: string;
  readonly engines: { readonly bun: string };
}

export function readManifest(root: string): ReleaseManifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as ReleaseManifest;
}

/** Runs programs with a minimal environment, on the Bun that runs this. */
export function runner(variables: Readonly<Record<string, string>> = {}): Run {
  return async (command, cwd) => {
    const child = Bun.spawn([...command], {
      cwd,
      env: { ...process.env, ...variables, NINEFOLD_BUN: process.execPath },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, output: out + error };
  };
}

/** Settings of a build of several platforms. */
export interface ExecutablesOptions {
  /** The repository's root. */
  readonly root: string;
  /** Folder of the files. */
  readonly folder: string;
  readonly platforms: readonly Platform[];
  readonly run: Run;
  /** Date of the commit. Debian packages are only built with it. */
  readonly date?: string;
}

/** Builds the executable and the packages of each platform. Prints a line for each. @throws Error */
export async function buildExecutables({
  root,
  folder,
  platforms,
  run,
  date,
}: ExecutablesOptions): Promise<void> {
  const manifest = readManifest(root);
  const { version } = manifest;
  const own = ownPlatform();
  const store = {
    folder: join(root, ".tools"),
    version: manifest.engines.bun,
    bun: process.execPath,
    knownHashes: readFileSync(join(root, "scripts", "bun.sha256"), "utf8"),
    run,
  };
  for (const platform of platforms) {
    const runtime = await obtainRuntime(store, platform);
    const shop = { root, folder, version, run };
    const { file, bytes, sha256, checked } = await buildArtifact(shop, platform, runtime, platform === own);
    const how = checked === "ran" ? "ran here" : "checked by its format";
    console.log(`${file.padEnd(34)} ${(bytes / 1e6).toFixed(1).padStart(6)} MB  ${how}  sha256 ${sha256}`);
    console.log(packPlatform(root, manifest, platform, join(folder, file), folder));
    if (date === undefined || !hasDebianPackage(platform)) continue;
    console.log(await packDebian({ ...shop, date, compression: "gzip" }, platform, join(folder, file)));
  }
}
