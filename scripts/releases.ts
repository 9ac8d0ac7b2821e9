// Makes a release: executables, npm packages, checksums, changes; scripts/build --all [PLATFORM…] comes here.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { packPlatform } from "./packages/platform.ts";
import { buildArtifact } from "./releases/build.ts";
import { finishRelease } from "./releases/finish.ts";
import { choosePlatforms, ownPlatform } from "./releases/platforms.ts";
import { obtainRuntime, type Run } from "./releases/runtime.ts";

const root = join(import.meta.dir, "..");
const folder = join(root, "dist", "release");

const run: Run = async (command, cwd) => {
  const child = Bun.spawn([...command], {
    cwd,
    // The builds run on the very Bun that runs this.
    env: { ...process.env, NINEFOLD_BUN: process.execPath },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, output: out + error };
};

try {
  const { engines, version } = manifest;
  const own = ownPlatform();
  const knownHashes = readFileSync(join(root, "scripts", "bun.sha256"), "utf8");
  const store = {
    folder: join(root, ".tools"),
    version: engines.bun,
    bun: process.execPath,
    knownHashes,
    run,
  };
  for (const platform of choosePlatforms(process.argv.slice(2))) {
    const runtime = await obtainRuntime(store, platform);
    const shop = { root, folder, version, run };
    const { file, bytes, sha256, checked } = await buildArtifact(shop, platform, runtime, platform === own);
    const how = checked === "ran" ? "ran here" : "checked by its format";
    console.log(`${file.padEnd(34)} ${(bytes / 1e6).toFixed(1).padStart(6)} MB  ${how}  sha256 ${sha256}`);
    console.log(packPlatform(root, manifest, platform, join(folder, file), folder));
  }
  for (const file of await finishRelease(root, folder, version)) console.log(file);
} catch (error) {
  console.error(`scripts/build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
