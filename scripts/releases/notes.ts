import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Release } from "./sbom.ts";

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
