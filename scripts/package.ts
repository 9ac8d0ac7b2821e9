// Builds and packs the npm packages for this machine, and the Python package: scripts/package [FOLDER] (default dist/package)
import { join, resolve } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { buildPackage, buildPython } from "./packages/build.ts";
import { pack, packPlatform } from "./packages/platform.ts";
import { ownPlatform } from "./releases/platforms.ts";

const root = join(import.meta.dir, "..");
const folder = resolve(process.argv[2] ?? join(root, "dist/package"));
await buildPackage(root, folder);
const packed = [
  pack(folder, folder),
  packPlatform(root, manifest, ownPlatform(), join(root, "dist/ninefold"), folder),
  ...buildPython(root, folder),
];
for (const file of packed) console.log(`packed ${join(folder, file)}`);
