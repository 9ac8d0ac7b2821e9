import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "./document.ts";
import { generate } from "./generate.ts";

/** The generated files in the house's format, by name. @throws Error when the formatter refuses them. */
export function generatedFiles(root: string): Map<string, string> {
  const document: Document = JSON.parse(readFileSync(join(root, "test/golden/openapi.json"), "utf8"));
  const files = generate(document);
  const folder = mkdtempSync(join(tmpdir(), "ninefold-types-"));
  try {
    const config = JSON.parse(readFileSync(join(root, "scripts/biome.json"), "utf8"));
    mkdirSync(join(folder, "out"));
    const { formatter, javascript } = config;
    writeFileSync(join(folder, "biome.json"), JSON.stringify({ root: true, formatter, javascript }));
    for (const [name, text] of files) writeFileSync(join(folder, "out", name), text);
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
    return new Map([...files.keys()].map((name) => [name, readFileSync(join(folder, "out", name), "utf8")]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
