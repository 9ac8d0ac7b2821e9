// Makes a release, everything but its publication; see scripts/release for the options.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { repositoryOf, sourcesOf, tryOut } from "./releases/checkout.ts";
import { buildExecutables, runner } from "./releases/executables.ts";
import { addressesOf, feedText, finishRelease, notesOf, writeSums } from "./releases/finish.ts";
import { publicKeyFile, publicKeyText, readSecretKey, signFile, throwAwayKey } from "./releases/minisign.ts";
import { choosePlatforms } from "./releases/platforms.ts";
import { publicationOf } from "./releases/rdap-list.ts";
import { billOfMaterials } from "./releases/sbom.ts";

const ROOT = join(import.meta.dir, "..");
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
const RDAP_LIST = "src/areas/monitors/registry/iana-dns.json";
/** The repository of a release that is a dry run, if package.json names none. */
const TRIED_REPOSITORY = "https://example.com/ninefold";

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
  const { NINEFOLD_RELEASE_KEY: secret = "" } = process.env;
  const repository = repositoryOf(ROOT) ?? (isTried ? TRIED_REPOSITORY : null);
  const sources = isTried ? tryOut(ROOT, version) : sourcesOf(ROOT, version);
  try {
    if (!isTried && secret === "")
      throw new Error("NINEFOLD_RELEASE_KEY has to be the secret key of releases");
    if (repository === null) throw new Error("package.json needs `repository`: the address of the releases");
    const key = isTried ? throwAwayKey() : readSecretKey(secret);
    const { root, commit, date } = sources;
    const release = { version, date };
    const list = publicationOf(readFileSync(join(root, RDAP_LIST), "utf8"));
    console.log(`list of RDAP servers of ${list}; scripts/rdap-list renews it`);
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
    const addresses = addressesOf(repository, version);
    write(`NOTES-${version}.md`, notesOf(folder, release, publicKeyText(key), addresses.files));
    sign("feed.json", feedText(release, addresses.page));
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
