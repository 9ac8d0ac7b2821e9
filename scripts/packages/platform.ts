import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Platform } from "../releases/platforms.ts";

/** The parts of the repository's package.json that are used. */
interface Manifest {
  readonly version: string;
  readonly license: string;
}

/** Name of the npm package with the executable for a platform; `src/testing/executable.ts` finds it by this name. */
export function platformPackage({ name }: Pick<Platform, "name">): string {
  return `@ninefold/${name}`;
}

/** How tightly a package is compressed: 0 to 9. */
const COMPRESSION = 9;

/** Packs an executable into the npm package of its platform, in a folder. Returns the name of the file. */
export function packPlatform(
  root: string,
  { version, license }: Manifest,
  platform: Platform,
  executable: string,
  folder: string,
  compression = COMPRESSION,
): string {
  const { os, cpu, libc } = platform;
  const scratch = mkdtempSync(join(tmpdir(), "ninefold-platform-"));
  try {
    const manifest = {
      name: platformPackage(platform),
      version,
      license,
      description: `The executable of Ninefold for ${platform.name}; the package ninefold brings it`,
      os: [os],
      cpu: [cpu],
      ...(libc === undefined ? {} : { libc: [libc] }),
      // It is executed, so it must be in a folder.
      files: ["bin"],
      preferUnplugged: true,
    };
    writeFileSync(join(scratch, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    cpSync(join(root, "LICENSE"), join(scratch, "LICENSE"));
    mkdirSync(join(scratch, "bin"));
    const program = join(scratch, "bin", os === "win32" ? "ninefold.exe" : "ninefold");
    cpSync(executable, program);
    chmodSync(program, 0o755);
    return pack(scratch, folder, compression);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Packs the package in a folder as for the registry, into another folder. Returns the name of the file. @throws Error */
export function pack(from: string, folder: string, compression = COMPRESSION): string {
  const options = ["--quiet", "--ignore-scripts", `--gzip-level=${compression}`, "--destination", folder];
  const command = [process.execPath, "pm", "pack", ...options];
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: from });
  if (!success) throw new Error(`${from} could not be packed:\n${stdout}${stderr}`);
  return stdout.toString().trim().replace(/^.*\//, "");
}
