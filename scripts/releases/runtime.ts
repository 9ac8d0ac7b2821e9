import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Platform } from "./platforms.ts";

/** Runs a program to its end. Resolves to its exit code and everything it printed. */
export type Run = (command: readonly string[], folder: string) => Promise<{ code: number; output: string }>;

/** Where runtimes are kept, and how they come there. */
export interface RuntimeStore {
  /** Folder of its own; made when it is needed. */
  readonly folder: string;
  /** The pinned version of Bun. */
  readonly version: string;
  /** The Bun that installs. */
  readonly bun: string;
  readonly run: Run;
}

/**
 * The Bun executable of a platform, from its package on the configured registry; installed once and kept. The
 * installer checks the package against the registry's checksum.
 *
 * @throws Error with the installer's output.
 */
export async function obtainRuntime(store: RuntimeStore, platform: Platform): Promise<string> {
  const kept = join(store.folder, `bun-${store.version}-${platform.name}`);
  const executable = executableIn(kept, platform);
  if (existsSync(executable)) return executable;
  const part = `${kept}.part-${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  try {
    writeFileSync(join(part, "package.json"), '{ "private": true }\n');
    const { code, output } = await store.run([store.bun, ...installArguments(platform, store.version)], part);
    if (code !== 0 || !existsSync(executableIn(part, platform))) {
      throw new Error(`${platform.package}@${store.version} could not be installed:\n${output.trimEnd()}`);
    }
    rmSync(kept, { recursive: true, force: true });
    renameSync(part, kept);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
  return executable;
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
