// Makes a release, everything but its publication; see scripts/release for the options.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { sourcesOf, tryOut } from "./releases/checkout.ts";
import { buildExecutables, runner } from "./releases/executables.ts";
import { finishRelease, writeSums } from "./releases/finish.ts";
import { publicKeyFile, publicKeyText, readSecretKey, signFile, throwAwayKey } from "./releases/minisign.ts";
import { feedText, notesOf } from "./releases/notes.ts";
import { choosePlatforms } from "./releases/platforms.ts";
import { billOfMaterials } from "./releases/sbom.ts";

const ROOT = join(import.meta.dir, "..");
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
/** Placeholder in a release that is a dry run. */
const TRIED_URL = "https://example.com/ninefold";

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      "dry-run": { type: "boolean", default: false },
      platform: { type: "string", multiple: true, default: [] },
      output: { type: "string", default: join(ROOT, "dist", "release") },
    },
  });
  const [version = "", ...more] = positionals;
  if (!VERSION.test(version) || more.length > 0) throw new Error("name one version, such as 1.2.3");
  const platforms = choosePlatforms(values.platform);
  const isTried = values["dry-run"];
  const { NINEFOLD_RELEASE_KEY: secret = "", NINEFOLD_RELEASE_URL: url = isTried ? TRIED_URL : "" } =
    process.env;
  const sources = isTried ? tryOut(ROOT, version) : sourcesOf(ROOT, version);
  try {
    if (!isTried && secret === "")
      throw new Error("NINEFOLD_RELEASE_KEY has to be the secret key of releases");
    if (url === "") throw new Error("NINEFOLD_RELEASE_URL has to be the URL that the release will have");
    const key = isTried ? throwAwayKey() : readSecretKey(secret);
    const { root, commit, date } = sources;
    const release = { version, date };
    const folder = resolve(values.output);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const write = (file: string, text: string): void => {
      writeFileSync(join(folder, file), text);
      console.log(file);
    };
    const sign = (file: string, text: string): void => {
      write(file, text);
      const comment = `ninefold ${version} ${file} ${date}`;
      write(`${file}.minisig`, signFile(Buffer.from(text), comment, key));
    };

    const run = runner({ NINEFOLD_COMMIT: commit, NINEFOLD_COMMIT_DATE: date });
    await buildExecutables({ root, folder, platforms, run, date });
    for (const file of await finishRelease(root, folder, version)) console.log(file);
    write(`ninefold-${version}.cdx.json`, billOfMaterials(root, release));
    write(`NOTES-${version}.md`, notesOf(folder, release, publicKeyText(key)));
    sign("feed.json", feedText(release, url));
    sign("SHA256SUMS", writeSums(folder, version));
    if (isTried) write("minisign.pub", publicKeyFile(key));
  } finally {
    sources.dispose();
  }
}

try {
  await main();
} catch (error) {
  console.error(`scripts/release: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
