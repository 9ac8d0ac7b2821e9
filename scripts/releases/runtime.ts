import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Platform } from "./platforms.ts";

/** Runs a program to its end. Resolves to its exit code and everything it printed. */
export type Run = (command: readonly string[], folder: string) => Promise<{ code: number; output: string }>;

/** Where runtimes are stored, and how they are installed. */
export interface RuntimeStore {
  /** The folder; created when it is needed. */
  readonly folder: string;
  /** The pinned version of Bun. */
  readonly version: string;
  /** The Bun that installs the packages. */
  readonly bun: string;
  /** The text of `scripts/bun.sha256`. */
  readonly knownHashes: string;
  readonly run: Run;
}

/**
 * The Bun executable of a platform, from its package on the configured registry, verified against the hash in the
 * repository and then stored.
 *
 * @throws Error with the installer's output, or if the executable does not match the hash.
 */
export async function obtainRuntime(store: RuntimeStore, platform: Platform): Promise<string> {
  const kept = join(store.folder, `bun-${store.version}-${platform.name}`);
  const executable = executableIn(kept, platform);
  if (existsSync(executable)) {
    checkHash(store, platform, readFileSync(executable));
    return executable;
  }
  const part = `${kept}.part-${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  try {
    writeFileSync(join(part, "package.json"), '{ "private": true }\n');
    const { code, output } = await store.run([store.bun, ...installArguments(platform, store.version)], part);
    if (code !== 0 || !existsSync(executableIn(part, platform))) {
      throw new Error(`${platform.package}@${store.version} could not be installed:\n${output.trimEnd()}`);
    }
    checkHash(store, platform, readFileSync(executableIn(part, platform)));
    rmSync(kept, { recursive: true, force: true });
    renameSync(part, kept);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
  return executable;
}

function checkHash(
  { knownHashes, version }: RuntimeStore,
  { package: name }: Platform,
  bytes: Uint8Array,
): void {
  const listed = `${name.replace("@oven/", "")}@${version}`;
  const lines = knownHashes.split("\n").map((line) => line.split(/\s+/));
  const known = lines.find(([, subject]) => subject === listed)?.[0];
  if (known === undefined) throw new Error(`scripts/bun.sha256 has no hash of ${listed}`);
  const actual = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  if (actual === known) return;
  throw new Error(
    `${listed} is not the known one: its SHA-256 is ${actual}, scripts/bun.sha256 says ${known}`,
  );
}

function installArguments(platform: Platform, version: string): string[] {
  return [
    "add",
    ...["--exact", "--ignore-scripts", "--no-progress"],
    ...[`--os=${platform.os}`, `--cpu=${platform.cpu}`],
    ...(platform.libc === undefined ? [] : [`--libc=${platform.libc}`]),
    `${platform.package}@${version}`,
  ];
}

function executableIn(folder: string, { package: name, os }: Platform): string {
  return join(folder, "node_modules", ...name.split("/"), "bin", os === "win32" ? "bun.exe" : "bun");
}
