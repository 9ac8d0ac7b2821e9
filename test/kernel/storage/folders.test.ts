import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../../src/kernel/storage/folders.ts";
import { endOf } from "../../support/ended.ts";
import { Scratch, thrown } from "../support.ts";

const scratch = new Scratch();
afterAll(() => scratch.remove());

test("a new data folder and its new parents have mode 0700", () => {
  const folder = scratch.path("a/b/c");
  expect(makeFolder(folder)).toBe(true);
  for (const path of ["a", "a/b", "a/b/c"]) expect(statSync(scratch.path(path)).mode & 0o777).toBe(0o700);
});

test("an existing folder is unchanged", () => {
  const folder = scratch.path("there");
  mkdirSync(folder, { mode: 0o750 });
  expect(makeFolder(folder)).toBe(false);
  expect(statSync(folder).mode & 0o777).toBe(0o750);
});

test("a folder that cannot be created is an error", () => {
  writeFileSync(scratch.path("file"), "");
  expect(String(thrown(() => makeFolder(scratch.path("file/data"))))).toContain(
    "The data folder cannot be created",
  );
});

const strace = Bun.which("strace");
if (strace === null) console.log("skipped: which folders are synced (it needs strace)");
test.skipIf(strace === null)("exactly the parents of created folders are synced", async () => {
  const trace = scratch.path("trace");
  const folder = join(realpathSync(scratch.folder), "x", "y");
  const code = `(await import(${JSON.stringify(join(import.meta.dir, "../../../src/kernel/storage/folders.ts"))})).makeFolder(${JSON.stringify(folder)})`;
  const command = ["strace", "-f", "-y", "-e", "trace=fsync", "-o", trace, process.execPath, "-e", code];
  expect((await endOf(command, { timeoutMs: 30_000 })).code).toBe(0);
  expect(existsSync(folder)).toBe(true);
  const synced = [...readFileSync(trace, "utf8").matchAll(/fsync\(\d+<([^>]+)>/g)].map(([, path]) => path);
  expect(synced).toEqual([join(folder, ".."), join(folder, "../..")]);
});
