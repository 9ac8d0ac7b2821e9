import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { lockFolder } from "../../../src/kernel/storage/folder-lock.ts";
import { makeFolder, makeTemporaryFolder } from "../../../src/kernel/storage/folders.ts";
import { endOf } from "../../support/ended.ts";
import { Scratch, thrown } from "../support.ts";

const scratch = new Scratch();
chmodSync(scratch.folder, 0o755);
afterAll(() => scratch.remove());

/** The user of the container image. */
const USER = 65_532;

const AS_USER = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", process.execPath];

/** Runs an expression with the modules of the storage as that user. Returns the message of its error. */
async function errorAsUser(expression: string): Promise<string> {
  const source = (path: string) => JSON.stringify(join(import.meta.dir, "../../../src/kernel", path));
  const code = `const s = { ...await import(${source("storage/folder-lock.ts")}), ...await import(${source("storage/folders.ts")}),
    ...await import(${source("storage/examine.ts")}), ...await import(${source("../backup/seal.ts")}), ...await import(${source("secrets/master-key.ts")}) };
    try { ${expression}; console.log("no error"); } catch (error) { console.log(error.message); }`;
  const { out, error } = await endOf([...AS_USER, "-e", code], { timeoutMs: 60_000 });
  return out.trim() || error;
}

const canChangeUser = process.getuid?.() === 0 && Bun.which("setpriv") !== null;
if (!canChangeUser) console.log("skipped: files of other users (it needs root and setpriv)");

test.skipIf(!canChangeUser)(
  "a file of another user is named with both users and what to do, and never as damaged",
  async () => {
    const folder = scratch.path("data");
    const path = (name: string) => JSON.stringify(join(folder, name));
    mkdirSync(folder, { mode: 0o755 });
    const owner = (name: string) =>
      `${name} belongs to user 0, and this process runs as user ${USER}. Change the owner (chown -R ${USER} ${folder}), or start as user 0.`;
    const lock = `s.lockFolder(${path("ninefold.lock")})`;
    expect(await errorAsUser(lock)).toBe(`The data folder cannot be written: ${owner(folder)}`);
    chownSync(folder, USER, USER);
    for (const name of ["ninefold.db", "master.key"]) writeFileSync(join(folder, name), "", { mode: 0o600 });
    expect(await errorAsUser(lock)).toBe(
      `The data folder cannot be written: ${owner(join(folder, "ninefold.db"))}`,
    );
    expect(await errorAsUser(`s.examineDatabase(${path("ninefold.db")}, [])`)).toBe(
      `The database cannot be read: ${owner(join(folder, "ninefold.db"))}`,
    );
    expect(await errorAsUser(`s.readSeal(${path("ninefold.db")})`)).toContain(
      `The backup cannot be read: ${join(folder, "ninefold.db")} belongs to user 0`,
    );
    expect(await errorAsUser(`s.findMasterKey({ configured: null, path: ${path("master.key")} })`)).toBe(
      `The master key cannot be read: ${owner(join(folder, "master.key"))}`,
    );
    const main = join(import.meta.dir, "../../../src/main.ts");
    const report = ["doctor", "--json", "--port", "0", "--dns-name", "localhost", "--data", folder];
    const { out } = await endOf([...AS_USER, main, ...report], { timeoutMs: 60_000 });
    expect(JSON.parse(out)).toMatchObject({
      checks: expect.arrayContaining([
        expect.objectContaining({
          name: "database",
          status: "failed",
          cure: `Change the owner (chown -R ${USER} ${folder}), or start as user 0.`,
        }),
      ]),
    });
    chownSync(join(folder, "ninefold.db"), USER, USER);
    chmodSync(join(folder, "ninefold.db"), 0o400);
    expect(await errorAsUser(lock)).toContain(
      `${join(folder, "ninefold.db")} has the mode 0400. Let its owner`,
    );
    const made = join(scratch.folder, "new");
    expect(await errorAsUser(`s.makeFolder(${JSON.stringify(made)})`)).toBe(
      `The data folder cannot be created: ${scratch.folder} belongs to user 0, and this process runs as user ${USER}. Create ${made} for the user of this process, or set another folder with --data.`,
    );
  },
);

test("a file in place of the data folder is named", () => {
  const file = scratch.path("file");
  writeFileSync(file, "");
  for (const folder of [file, join(file, "data")])
    expect(String(thrown(() => makeFolder(folder)))).toContain(
      `The data folder cannot be created: ${file} is not a folder.`,
    );
});

test("without a folder for temporary files, the error names TMPDIR", () => {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = scratch.path("none");
  try {
    expect(String(thrown(() => makeTemporaryFolder("x-")))).toContain("Set TMPDIR to a folder");
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
});

test.skipIf(!canChangeUser)(
  "what root leaves in the folder of another user belongs to that user; files with a second name stay",
  () => {
    const folder = scratch.path("of-a-service");
    const elsewhere = scratch.path("elsewhere");
    mkdirSync(folder);
    chownSync(folder, USER, USER);
    const release = lockFolder(join(folder, "ninefold.lock"));
    for (const path of [join(folder, "ninefold.db"), elsewhere]) writeFileSync(path, "");
    linkSync(elsewhere, join(folder, "linked"));
    symlinkSync(elsewhere, join(folder, "symbolic"));
    release();
    const owners = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).uid] as const);
    expect(Object.fromEntries(owners)).toEqual({
      "ninefold.db": USER,
      "ninefold.lock": USER,
      linked: 0,
      symbolic: 0,
    });
  },
);
