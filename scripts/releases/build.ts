import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeFormat, readFormat } from "./format.ts";
import { type Platform, releaseName } from "./platforms.ts";
import type { Run } from "./runtime.ts";

/** Settings of a build. */
export interface Workshop {
  /** The repository's root. */
  readonly root: string;
  /** Folder of the files. */
  readonly folder: string;
  /** Ninefold's own version. */
  readonly version: string;
  readonly run: Run;
}

/** An executable that was built and checked. */
export interface Artifact {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Whether it was run here, or only the head of its file was checked. */
  readonly checked: "ran" | "format";
}

/**
 * Builds the executable of one platform on a runtime, checks it, and writes it with its checksum (for `sha256sum -c`).
 *
 * @throws Error when the build fails, or when its result does not fit the platform.
 */
export async function buildArtifact(
  shop: Workshop,
  platform: Platform,
  runtime: string,
  runsHere: boolean,
): Promise<Artifact> {
  const file = releaseName(platform, shop.version);
  mkdirSync(shop.folder, { recursive: true });
  const part = mkdtempSync(join(shop.folder, ".part-"));
  try {
    const built = await compile(shop, platform, runtime, part);
    const bytes = readFileSync(built);
    checkFormat(bytes, platform);
    chmodSync(built, 0o755);
    if (runsHere) await checkRun(shop, built);
    const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
    writeFileSync(join(part, "sum"), `${sha256}  ${file}\n`);
    renameSync(built, join(shop.folder, file));
    renameSync(join(part, "sum"), join(shop.folder, `${file}.sha256`));
    return { file, bytes: bytes.byteLength, sha256, checked: runsHere ? "ran" : "format" };
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

async function compile(shop: Workshop, platform: Platform, runtime: string, folder: string): Promise<string> {
  // The name is part of the bytes: the same name everywhere makes builds reproducible.
  const built = join(folder, platform.os === "win32" ? "ninefold.exe" : "ninefold");
  const command = [
    join(shop.root, "scripts", "build"),
    `--target=${platform.target}`,
    `--compile-executable-path=${runtime}`,
    `--outfile=${built}`,
  ];
  const { code, output } = await shop.run(["sh", ...command], shop.root);
  if (code !== 0) throw new Error(`the build for ${platform.name} failed:\n${output.trimEnd()}`);
  return built;
}

function checkFormat(bytes: Uint8Array, platform: Platform): void {
  const found = describeFormat(readFormat(bytes));
  const wanted = describeFormat(platform.format);
  if (found !== wanted)
    throw new Error(`the build for ${platform.name} is ${found}, but has to be ${wanted}`);
}

async function checkRun(shop: Workshop, built: string): Promise<void> {
  const { code, output } = await shop.run([built, "version"], shop.root);
  if (code !== 0 || output.split("\n", 1)[0] !== shop.version) {
    throw new Error(`${built} version printed ${JSON.stringify(output)} with exit code ${code}`);
  }
}
