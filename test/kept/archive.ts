import { readFileSync, writeFileSync } from "node:fs";

/** Packs a data folder with the permissions of its files. Zstandard: a log repeats whole pages, far apart. */
export function pack(folder: string, archive: string): void {
  const packed = tar(["-c", "--owner=0", "--group=0", "-C", folder, "."]);
  writeFileSync(archive, Bun.zstdCompressSync(packed, { level: 19 }));
}

/** Unpacks a kept folder into an existing one. */
export function unpack(archive: string, folder: string): void {
  tar(["-x", "-C", folder], Bun.zstdDecompressSync(readFileSync(archive)));
}

function tar(args: readonly string[], input?: Uint8Array): Uint8Array<ArrayBuffer> {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["tar", ...args], { stdin: input ?? "ignore" });
  if (exitCode !== 0) throw new Error(`tar: ${stderr.toString()}`);
  return new Uint8Array(stdout);
}
