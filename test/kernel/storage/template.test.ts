import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import TEMPLATE from "../../../build/template/ninefold.bin" with { type: "file" };
import { MIGRATIONS } from "../../../migrations/index.ts";
import { openDataFolder } from "../../../src/data-folder.ts";
import { closeKernel } from "../../../src/kernel/kernel.ts";
import { Database } from "../../../src/kernel/storage/database.ts";
import { migrate } from "../../../src/kernel/storage/migrate.ts";
import { copyTemplate } from "../../../src/kernel/storage/template.ts";
import { ManualClock } from "../../../src/kernel/time/clock.ts";
import { Scratch } from "../support.ts";

let scratch: Scratch;

beforeEach(() => {
  scratch = new Scratch();
});

afterEach(() => scratch.remove());

/** Everything in a database: its pragmas, its schema and the rows of every table, except each database's own id. */
function contentOf(path: string): Record<string, unknown> {
  using db = new SqliteDatabase(path, { readonly: true });
  const content: Record<string, unknown> = {};
  for (const pragma of [
    "user_version",
    "application_id",
    "page_size",
    "encoding",
    "auto_vacuum",
    "journal_mode",
  ])
    content[pragma] = db.query(`PRAGMA ${pragma}`).values();
  content["sqlite_schema"] = db.query("SELECT * FROM sqlite_schema ORDER BY rowid").values();
  const tables = db.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  for (const { name } of tables) {
    const own = name === "settings" ? " WHERE name <> 'instance_id'" : "";
    content[name] = db.query(`SELECT * FROM "${name}"${own}`).values();
  }
  return content;
}

function instanceIdIn(path: string): unknown {
  using db = new SqliteDatabase(path, { readonly: true });
  return db.query("SELECT value FROM settings WHERE name = 'instance_id'").values()[0]?.[0];
}

function openAndClose(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const options = { masterKey: null, durability: "full", clock: new ManualClock(), log } as const;
  closeKernel(openDataFolder(folder, options));
  return `${folder}/ninefold.db`;
}

test("the template equals the result of the migrations, with sqlite_schema and all rows", () => {
  const path = scratch.path("migrated.db");
  const db = new Database(path, "normal");
  migrate(db, MIGRATIONS);
  db.close();
  const copy = scratch.path("copy.db");
  copyTemplate(TEMPLATE, copy, "full");
  expect(contentOf(copy)).toEqual(contentOf(path));
  expect(instanceIdIn(path)).toMatch(/^[0-9a-f]{8}$/);
  expect(instanceIdIn(copy)).toBe("");
});

test("every database copied from it has its own instance id, which later starts keep", () => {
  const paths = ["one", "two"].map((name) => openAndClose(scratch.path(name)));
  const ids = paths.map(instanceIdIn);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}$/);
  expect(new Set(ids).size).toBe(2);
  openAndClose(scratch.path("one"));
  expect(instanceIdIn(paths[0] ?? "")).toBe(ids[0]);
});

test("a copy that was interrupted by a kill is made again without remains", () => {
  mkdirSync(scratch.path("folder"));
  writeFileSync(scratch.path("folder/ninefold.db.new"), "part of it");
  openAndClose(scratch.path("folder"));
  expect(readdirSync(scratch.path("folder")).sort()).toEqual(["master.key", "ninefold.db"]);
});

test("a failed copy leaves nothing, and the migrations create the database", () => {
  copyTemplate(scratch.path("missing.db"), scratch.path("ninefold.db"), "full");
  expect(readdirSync(scratch.folder)).toEqual([]);
});

test("a symbolic link without its target is not replaced", () => {
  symlinkSync(scratch.path("elsewhere.db"), scratch.path("link.db"));
  copyTemplate(TEMPLATE, scratch.path("link.db"), "full");
  expect(existsSync(scratch.path("elsewhere.db"))).toBeFalse();
  expect(readdirSync(scratch.folder)).toEqual(["link.db"]);
});
