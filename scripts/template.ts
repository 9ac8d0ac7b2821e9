// Creates the template of a new database, build/template/ninefold.bin, unless it was already created from the same
// migrations.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../migrations/index.ts";
import { makeTemplate } from "../src/kernel/storage/template.ts";

const OUT = join(import.meta.dir, "../build/template");
const FILE = "ninefold.bin";
/** Contains the hash of the migrations that the template was created from. */
const STAMP = "stamp";

function isMade(stamp: string): boolean {
  const stored = join(OUT, STAMP);
  return existsSync(stored) && readFileSync(stored, "utf8") === stamp && existsSync(join(OUT, FILE));
}

function make(stamp: string): void {
  // Created in a temporary folder and then renamed, because concurrent tests may create it too.
  const part = `${OUT}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  makeTemplate(join(part, FILE), MIGRATIONS);
  writeFileSync(join(part, STAMP), stamp);
  rmSync(OUT, { recursive: true, force: true });
  try {
    renameSync(part, OUT);
  } catch (error) {
    // Another process has created the same in the meantime.
    rmSync(part, { recursive: true, force: true });
    if (!isMade(stamp)) throw error;
  }
}

// And in the same format.
const format = readFileSync(join(import.meta.dir, "../src/kernel/storage/template.ts"), "utf8");
const stamp = Bun.hash(JSON.stringify([format, MIGRATIONS])).toString(16);
if (!isMade(stamp)) make(stamp);
