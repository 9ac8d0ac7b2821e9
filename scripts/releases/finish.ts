import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage } from "../packages/build.ts";
import { pack } from "../packages/platform.ts";
import type { Release } from "./sbom.ts";

/**
 * Adds the package `ninefold` and the version's changes to the executables in a folder. Returns the names of the files.
 *
 * @throws Error when the changelog has no section for the version.
 */
export async function finishRelease(root: string, folder: string, version: string): Promise<string[]> {
  const changes = `CHANGES-${version}.md`;
  writeFileSync(join(folder, changes), changesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version));
  const built = mkdtempSync(join(tmpdir(), "ninefold-package-"));
  try {
    await buildPackage(root, built);
    const packed = pack(built, folder);
    return [packed, changes];
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

/** The section of a version in a changelog. @throws Error without one. */
export function changesOf(changelog: string, version: string): string {
  const part = changelog.split(/^(?=## )/m).find((one) => one.split(/\s/, 2)[1] === version);
  if (part === undefined) throw new Error(`CHANGELOG.md has no part of ${version}`);
  return `${part.trimEnd()}\n`;
}

/** Writes one file for `sha256sum -c` with all files of a version in a folder, and returns its text. */
export function writeSums(folder: string, version: string): string {
  const files = readdirSync(folder).filter(
    (file) => ["-", "_"].some((sign) => file.includes(`${sign}${version}`)) && !file.endsWith(".sha256"),
  );
  const lines = files.sort().map((file) => {
    const sum = new Bun.CryptoHasher("sha256").update(readFileSync(join(folder, file))).digest("hex");
    return `${sum}  ${file}\n`;
  });
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
  return lines.join("");
}

/** Where a release is: its page, and what the addresses of its files begin with. */
export function addressesOf(repository: string, version: string): { page: string; files: string } {
  return {
    page: `${repository}/releases/tag/v${version}`,
    files: `${repository}/releases/download/v${version}`,
  };
}

/** The feed that `ninefold upgrade --check` loads. */
export function feedText({ version, date }: Release, url: string): string {
  return `${JSON.stringify({ version, date, url })}\n`;
}

/** Purpose of each file, by the end or a part of its name. */
const PURPOSES: readonly (readonly [pattern: RegExp, purpose: string])[] = [
  [/\.deb$/, "Debian and Ubuntu"],
  [/\.cdx\.json$/, "SBOM (CycloneDX 1.6)"],
  [/^ninefold-\d[^a-z]*\.tgz$/, "npm: client, verifier and test server"],
  [/\.tgz$/, "npm: the executable of a platform"],
  [/^ninefold-.*-(linux|darwin|windows)-/, "executable"],
];

/** The notes of a release: how to get and verify its files, which are in `folder` and will be at `address`, and its changes. */
export function notesOf(
  folder: string,
  { version, date }: Release,
  publicKey: string,
  address: string,
): string {
  const rows = readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const purpose = PURPOSES.find(([pattern]) => pattern.test(file))?.[1];
      return purpose === undefined || file.endsWith(".sha256") ? [] : [`| \`${file}\` | ${purpose} |\n`];
    });
  const changes = readFileSync(join(folder, `CHANGES-${version}.md`), "utf8").replace(/^## .*\n+/, "");
  return `# Ninefold ${version}

Released on ${date.slice(0, 10)}.

## Files

| file | content |
|---|---|
${rows.join("")}
Download the file that you need with its checksums, and verify it before you use it:

\`\`\`sh
curl -fL --remote-name-all ${address}/{FILE,SHA256SUMS,SHA256SUMS.minisig}
minisign -V -P ${publicKey} -m SHA256SUMS
sha256sum --check --ignore-missing SHA256SUMS
\`\`\`

## Changes

${changes}`;
}
