// Builds the executables of a release, npm packages, checksums and release notes, for scripts/build --all [PLATFORM…].
import { join } from "node:path";
import { buildExecutables, readManifest, runner } from "./releases/executables.ts";
import { finishRelease, writeSums } from "./releases/finish.ts";
import { choosePlatforms } from "./releases/platforms.ts";

const root = join(import.meta.dir, "..");
const folder = join(root, "dist", "release");

try {
  const platforms = choosePlatforms(process.argv.slice(2));
  await buildExecutables({ root, folder, platforms, run: runner() });
  const { version } = readManifest(root);
  for (const file of await finishRelease(root, folder, version)) console.log(file);
  writeSums(folder, version);
  console.log("SHA256SUMS");
} catch (error) {
  console.error(`scripts/build: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
