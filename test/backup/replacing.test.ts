import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeGently, replaceFile } from "../../src/backup/files.ts";
import { discardSecondName, moveAside } from "../../src/backup/replaced.ts";
import { readSeal, writeSeal } from "../../src/backup/seal.ts";
import { syncFolder, syncPath } from "../../src/kernel/storage/folders.ts";
import { copyLiveDatabase } from "../../src/kernel/storage/live-copy.ts";
import { thrown } from "../kernel/support.ts";
import { BackupStage, ninefold, TIMEOUT_MS } from "./support.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "ninefold-replacing-")));
const stage = new BackupStage();
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await stage.close();
});

/** More than the file system frees in one step. */
const LARGE_BYTES = 40 * 1024 * 1024;

test("the target of a symbolic link is unchanged when the link is replaced or removed", async () => {
  const file = join(folder, "first.db");
  writeFileSync(file, "");
  truncateSync(file, LARGE_BYTES);
  const link = join(folder, "latest.db");
  symlinkSync(file, link);
  writeFileSync(join(folder, "new"), "new");
  await replaceFile(link, join(folder, "new"));
  expect(readFileSync(link, "utf8")).toBe("new");
  expect(statSync(file).size).toBe(LARGE_BYTES);
  rmSync(link);
  symlinkSync(file, link);
  await removeGently(link);
  expect(readdirSync(folder)).toEqual(["first.db"]);
  expect(statSync(file).size).toBe(LARGE_BYTES);
});

test("a file system that cannot sync folders is accepted; a missing folder is an error", () => {
  // Linux cannot sync this one.
  if (process.platform === "linux") {
    expect(thrown(() => syncPath("/proc"))).toMatchObject({ code: "EINVAL" });
    expect(syncFolder("/proc")).toBeUndefined();
  }
  expect(thrown(() => syncFolder(join(folder, "none")))).toMatchObject({ code: "ENOENT" });
});

test("an undone replacement removes the second name; a completed one keeps it", () => {
  const path = join(folder, "live.db");
  writeFileSync(path, "old");
  const aside = moveAside(path, 0);
  expect(statSync(path).nlink).toBe(2);
  discardSecondName(path, aside);
  expect(readdirSync(folder).sort()).toEqual(["first.db", "live.db"]);
  const kept = moveAside(path, 0);
  rmSync(path);
  writeFileSync(path, "new");
  discardSecondName(path, kept);
  expect(readFileSync(kept, "utf8")).toBe("old");
  for (const name of [path, kept]) rmSync(name);
});

test("every changed byte of a backup's last line is detected", () => {
  const path = join(folder, "sealed");
  const seal = { createdAt: 1_795_240_000_123, bytes: 4096, sha256: "0123456789abcdef".repeat(4) };
  const file = openSync(path, "w+");
  writeSeal(file, seal);
  expect(readSeal(path)).toEqual(seal);
  const whole = readFileSync(path);
  expect(whole.length).toBe(seal.bytes + 160);
  for (let position = seal.bytes; position < whole.length; position += 1) {
    const changed = Buffer.from(whole);
    changed[position] = (changed[position] ?? 0) ^ 1;
    writeFileSync(path, changed);
    expect(readSeal(path)).toBeNull();
  }
  rmSync(path);
});

test("a database that is replaced during the copy is copied again from the start", async () => {
  const source = join(folder, "source.db");
  const make = (path: string, text: string): void => {
    const db = new Database(path, { create: true });
    db.run("PRAGMA journal_mode = WAL");
    db.run("CREATE TABLE t (text)");
    for (let row = 0; row < 40; row += 1) db.run("INSERT INTO t VALUES (?)", [text.repeat(100_000)]);
    db.close();
  };
  make(source, "a");
  make(join(folder, "other.db"), "b");
  let slices = 0;
  const target = join(folder, "target.db");
  await copyLiveDatabase(source, target, () => {
    slices += 1;
    if (slices === 2) renameSync(join(folder, "other.db"), source);
    return Promise.resolve();
  });
  const db = new Database(target, { readonly: true });
  expect(db.query("SELECT substr(text, 1, 1) AS first, count(*) AS count FROM t GROUP BY 1").all()).toEqual([
    { first: "b", count: 40 },
  ]);
  db.close();
});

test("an existing file with the name of the temporary copy is not written to", async () => {
  const source = join(folder, "source.db");
  const mine = join(folder, "mine");
  writeFileSync(mine, "mine");
  const target = join(folder, "planted.db");
  symlinkSync(mine, target);
  await copyLiveDatabase(source, target, () => Promise.resolve());
  expect(readFileSync(mine, "utf8")).toBe("mine");
  expect(lstatSync(target).isFile()).toBe(true);
  expect(statSync(target).mode & 0o777).toBe(0o600);
});

const copy = stage.path("copy.db");
const disk = stage.path("disk");

/** A database on another disk, killed with a balance of 14 in its log; its backup has 9. */
beforeAll(async () => {
  let server = await stage.start();
  await server.stop();
  mkdirSync(disk);
  renameSync(stage.path("data/ninefold.db"), join(disk, "large.db"));
  symlinkSync(join(disk, "large.db"), stage.path("data/ninefold.db"));
  server = await stage.start();
  const client = stage.client(server);
  await client.post("/v1/meter/m/refill", { amount: 9 });
  expect((await ninefold(["backup", copy, "--data", stage.path("data"), "--verify"])).code).toBe(0);
  await client.post("/v1/meter/m/refill", { amount: 5 });
  await server.stop("SIGKILL");
}, TIMEOUT_MS);

const balanceIn = (path: string) => {
  const db = new Database(path, { readonly: true });
  try {
    return db.query("SELECT balance_after FROM meter_entries ORDER BY sequence DESC").values()[0]?.[0];
  } finally {
    db.close();
  }
};

test(
  "a database behind a symbolic link is backed up with its log and not overwritten",
  async () => {
    const second = stage.path("second.db");
    expect((await ninefold(["backup", second, "--data", stage.path("data")])).code).toBe(0);
    expect(balanceIn(second)).toBe(14);
    for (const own of ["large.db", "large.db-wal", "large.db-shm"]) {
      const ended = await ninefold(["backup", join(disk, own), "--data", stage.path("data"), "--force"]);
      expect(ended.error).toMatch(/is a file of the data folder itself: set another name\.$/m);
    }
  },
  TIMEOUT_MS,
);

test(
  "a database behind a symbolic link is restored at its real path, next to the old one",
  async () => {
    const itself = await ninefold([
      "restore",
      join(disk, "large.db"),
      "--data",
      stage.path("data"),
      "--force",
    ]);
    expect(itself.error).toMatch(/is the database of .* itself\.$|has a write-ahead log next to it/m);
    const ended = await ninefold(["restore", copy, "--data", stage.path("data"), "--force"]);
    expect([ended.code, ended.error]).toEqual([0, ""]);
    const [, aside = ""] = /^kept {6}the former database as (.*)$/m.exec(ended.out) ?? [];
    expect(aside).toStartWith(join(realpathSync(disk), "large.db.replaced-"));
    expect(lstatSync(stage.path("data/ninefold.db")).isSymbolicLink()).toBe(true);
    // Reading a database in WAL mode creates a log next to it, so a copy is read.
    for (const [path, balance] of [
      [aside, 14],
      [join(disk, "large.db"), 9],
    ] as const) {
      expect(lstatSync(path).isFile()).toBe(true);
      copyFileSync(path, stage.path("look.db"));
      const db = new Database(stage.path("look.db"));
      expect(
        db.query("SELECT balance_after FROM meter_entries ORDER BY sequence DESC").values()[0]?.[0],
      ).toBe(balance);
      db.close();
    }
    const server = await stage.start();
    expect((await stage.client(server).get("/v1/meter/m/balance")).body["balance"]).toBe(9);
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "errors in other parts of the server's configuration are ignored",
  async () => {
    const environment = {
      NINEFOLD_DATA: stage.path("data"),
      NINEFOLD_BACKUP_CRON: "0 4 * * *",
      NINEFOLD_TLS_CERT: "cert.pem",
      NINEFOLD_TEST_CLOCK: "true",
      NINEFOLD_PORT: "eighty",
      NINEFOLD_OPERATOR_KEY_FILE: stage.path("none"),
    };
    const file = stage.path("configured.db");
    const result = await ninefold(["backup", file], environment);
    expect([result.code, result.error]).toEqual([0, ""]);
    const back = await ninefold(["restore", file, "--force"], environment);
    expect([back.code, back.error]).toEqual([0, ""]);
  },
  TIMEOUT_MS,
);
