import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage } from "../packages/build.ts";
import { pack } from "../packages/platform.ts";

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
