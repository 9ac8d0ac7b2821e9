// Builds the npm package: scripts/package [FOLDER], dist/package unless given.
import { join, resolve } from "node:path";
import { buildPackage } from "./packages/build.ts";

const root = join(import.meta.dir, "..");
const folder = resolve(process.argv[2] ?? join(root, "dist/package"));
await buildPackage(root, folder);
console.log(`built ${folder}`);
