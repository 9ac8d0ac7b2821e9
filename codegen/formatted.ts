import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { access } from "./access.ts";
import { bodies } from "./bodies.ts";
import type { Document } from "./document.ts";
import { GENERATED_FILES, generate } from "./generate.ts";
import { generateMethods } from "./method-text.ts";
import { operationList } from "./operation-list.ts";
import { pythonFiles } from "./python/files.ts";

/** The formatted generated files by their paths. @throws Error if the formatter rejects one */
export function generatedFiles(root: string): Record<string, string> {
  const document: Document = JSON.parse(readFileSync(join(root, "test/golden/openapi.json"), "utf8"));
  const folder = mkdtempSync(join(tmpdir(), "ninefold-types-"));
  try {
    const config = JSON.parse(readFileSync(join(root, "scripts/biome.json"), "utf8"));
    mkdirSync(join(folder, "out"));
    const { formatter, javascript } = config;
    writeFileSync(join(folder, "biome.json"), JSON.stringify({ root: true, formatter, javascript }));
    const texts = {
      [GENERATED_FILES.types]: generate(document),
      [GENERATED_FILES.methods]: generateMethods(document),
      [GENERATED_FILES.bodies]: bodies(document),
      [GENERATED_FILES.access]: access(document),
    };
    const staged = (path: string): string => join(folder, "out", basename(path));
    for (const [path, text] of Object.entries(texts)) writeFileSync(staged(path), text);
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
    const formatted = Object.keys(texts).map((path) => [path, readFileSync(staged(path), "utf8")]);
    return {
      ...Object.fromEntries(formatted),
      ...pythonFiles(document),
      [GENERATED_FILES.operations]: operationList(document),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
