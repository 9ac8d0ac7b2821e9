import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "./document.ts";
import { generate } from "./generate.ts";

/** The formatted generated file. @throws Error if the formatter rejects it */
export function generatedFile(root: string): string {
  const document: Document = JSON.parse(readFileSync(join(root, "test/golden/openapi.json"), "utf8"));
  const folder = mkdtempSync(join(tmpdir(), "ninefold-types-"));
  try {
    const config = JSON.parse(readFileSync(join(root, "scripts/biome.json"), "utf8"));
    mkdirSync(join(folder, "out"));
    const { formatter, javascript } = config;
    writeFileSync(join(folder, "biome.json"), JSON.stringify({ root: true, formatter, javascript }));
    const file = join(folder, "out/api.ts");
    writeFileSync(file, generate(document));
    const command = [
      process.execPath,
      join(root, "node_modules/@biomejs/biome/bin/biome"),
      "check",
      "--linter-enabled=false",
      "--write",
      "out",
    ];
    const { success, stderr } = Bun.spawnSync(command, { cwd: folder, stdout: "ignore" });
    if (!success) throw new Error(stderr.toString());
    return readFileSync(file, "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
