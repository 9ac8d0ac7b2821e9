// Makes the template of a new database, build/template/ninefold.db, unless it is there already from the same migrations.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../migrations/index.ts";
import { makeTemplate } from "../src/kernel/storage/template.ts";

const OUT = join(import.meta.dir, "../build/template");
const FILE = "ninefold.db";
/** Holds the hash of the migrations that the template was made from. */
const STAMP = "stamp";

function isMade(stamp: string): boolean {
  const stored = join(OUT, STAMP);
  return existsSync(stored) && readFileSync(stored, "utf8") === stamp;
}

function make(stamp: string): void {
  // Next to its place, then moved there whole: tests that run at the same time may make it too.
  const part = `${OUT}.${process.pid}`;
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  makeTemplate(join(part, FILE), MIGRATIONS);
  writeFileSync(join(part, STAMP), stamp);
  rmSync(OUT, { recursive: true, force: true });
  try {
    renameSync(part, OUT);
  } catch (error) {
    // Another process was faster with the same.
    rmSync(part, { recursive: true, force: true });
    if (!isMade(stamp)) throw error;
  }
}

const stamp = Bun.hash(JSON.stringify(MIGRATIONS)).toString(16);
if (!isMade(stamp)) make(stamp);
