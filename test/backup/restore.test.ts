import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { plainEnvironment, SOURCE_COMMAND } from "../harness/processes/server-process.ts";
import { BackupStage, ninefold, runToEnd, TIMEOUT_MS } from "./support.ts";

const stage = new BackupStage();
afterAll(() => stage.close());

const data = stage.path("data");
const copy = stage.path("copy.db");
const KILLS = 14;

/** A server with a balance of 9, backed up; then killed at a balance of 14, with changes in its log. */
beforeAll(async () => {
  const server = await stage.start();
  const client = stage.client(server);
  await client.post("/v1/meter/m/refill", { amount: 9 });
  await client.post("/v1/witness/sys/init");
  await client.post("/v1/witness/log", { log: { number: 1 } });
  expect((await ninefold(["backup", copy, "--data", data])).code).toBe(0);
  await client.post("/v1/meter/m/refill", { amount: 5 });
  await server.stop("SIGKILL");
  expect(statSync(join(data, "ninefold.db-wal")).size).toBeGreaterThan(0);
}, TIMEOUT_MS);

/** A fresh copy of the killed server's folder. */
function folder(name: string): string {
  const path = stage.path(name);
  rmSync(path, { recursive: true, force: true });
  cpSync(data, path, { recursive: true });
  return path;
}

/** The content of a database with its log, read from copies so that nothing is changed. */
function balanceIn(path: string): number | null {
  const place = stage.path("look");
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  for (const side of ["", "-wal", "-journal"]) {
    if (existsSync(`${path}${side}`)) copyFileSync(`${path}${side}`, join(place, `x.db${side}`));
  }
  const db = new Database(join(place, "x.db"));
  try {
    expect(db.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    return (
      db
        .query<{ balance_after: number }, []>(
          "SELECT balance_after FROM meter_entries ORDER BY sequence DESC",
        )
        .get()?.balance_after ?? null
    );
  } finally {
    db.close();
  }
}

const contents = (path: string) =>
  Object.fromEntries(
    readdirSync(path)
      .filter((name) => name !== "ninefold.lock-journal")
      .map((name) => [name, readFileSync(join(path, name)).toBase64()]),
  );

describe("restored", () => {
  test(
    "to a new machine: creates the folder and reports that the key is missing",
    async () => {
      const fresh = stage.path("fresh/data");
      const ended = await ninefold(["restore", copy, "--data", fresh]);
      expect([ended.code, ended.error]).toEqual([0, ""]);
      expect(ended.out.split("\n")).toEqual([
        expect.stringMatching(/^restored {2}.*copy\.db \(of \d{4}-\d\d-\d\dT[\d:.]+Z\) to .*fresh\/data$/),
        expect.stringMatching(
          /^locks {5}fencing tokens continue above \d{16}, which is higher than any token issued before$/,
        ),
        expect.stringMatching(/^changes {3}everything after the backup is gone/),
        "notary    1 chain ends at the time of the backup: later receipts are lost, and their sequence_ids will be reused",
        expect.stringMatching(/^ {10}wc_\S{32} ends at 1 \(\d{4}-.*Z\)$/),
        expect.stringMatching(
          /^key {7}There is no master key in .*fresh\/data\. Put the master\.key of the server/,
        ),
        "",
      ]);
      expect(statSync(fresh).mode & 0o777).toBe(0o700);
      expect(statSync(join(fresh, "ninefold.db")).mode & 0o777).toBe(0o600);
      expect(readdirSync(fresh).sort()).toEqual(["ninefold.db", "ninefold.lock"]);
      copyFileSync(join(data, "master.key"), join(fresh, "master.key"));
      const server = await stage.start("fresh/data");
      expect((await stage.client(server).get("/v1/meter/m/balance")).body["balance"]).toBe(9);
      await server.stop();
    },
    TIMEOUT_MS,
  );

  test(
    "over a database: keeps it complete with its log, which is not applied to the new one",
    async () => {
      const place = folder("over");
      const ended = await ninefold(["restore", copy, "--data", place, "--force"]);
      expect([ended.code, ended.error]).toEqual([0, ""]);
      const [, aside = ""] = /^kept {6}the former database as (.*)$/m.exec(ended.out) ?? [];
      expect(aside).toMatch(/over\/ninefold\.db\.replaced-\d{8}T\d{6}Z$/);
      expect(balanceIn(aside)).toBe(14);
      expect(balanceIn(join(place, "ninefold.db"))).toBe(9);
      expect(ended.out).toContain("key       the master key fits");
      const server = await stage.start("over");
      expect((await stage.client(server).get("/v1/meter/m/balance")).body["balance"]).toBe(9);
      await server.stop();
    },
    TIMEOUT_MS,
  );

  test(
    "over a damaged database: keeps all its files unchanged",
    async () => {
      const place = folder("over-damaged");
      writeFileSync(join(place, "ninefold.db"), "Dear diary, ".repeat(1_000));
      // With a log whose pages SQLite can still recover, it would become a database again.
      const log = "not a log, ".repeat(1_000);
      writeFileSync(join(place, "ninefold.db-wal"), log);
      const ended = await ninefold(["restore", copy, "--data", place, "--force"]);
      expect([ended.code, ended.error]).toEqual([0, ""]);
      const [, aside = ""] = /^kept {6}the former database as (.*)$/m.exec(ended.out) ?? [];
      expect(readFileSync(aside, "utf8")).toBe("Dear diary, ".repeat(1_000));
      expect(readFileSync(`${aside}-wal`, "utf8")).toBe(log);
      expect(balanceIn(join(place, "ninefold.db"))).toBe(9);
    },
    TIMEOUT_MS,
  );

  test(
    "next to a log without its database, which is not applied to the new one",
    async () => {
      const place = folder("log-only");
      rmSync(join(place, "ninefold.db"));
      expect((await ninefold(["restore", copy, "--data", place])).error).toContain(
        "There is already a database in",
      );
      expect((await ninefold(["restore", copy, "--data", place, "--force"])).code).toBe(0);
      expect(balanceIn(join(place, "ninefold.db"))).toBe(9);
      expect(readdirSync(place).filter((name) => name.endsWith("-wal"))).toEqual([
        expect.stringMatching(/^ninefold\.db\.replaced-.*-wal$/),
      ]);
    },
    TIMEOUT_MS,
  );

  test(
    "from a database that was copied manually from a stopped server",
    async () => {
      const hand = stage.path("hand.db");
      writeFileSync(hand, readFileSync(copy).subarray(0, -160));
      const ended = await ninefold(["restore", hand, "--data", stage.path("by-hand")]);
      expect(ended.code).toBe(0);
      expect(ended.out).toContain("a database copied by other means");
    },
    TIMEOUT_MS,
  );

  const keys: readonly (readonly [
    name: string,
    text: string,
    environment: Record<string, string>,
    said: RegExp,
  ])[] = [
    ["another key", `${"ab".repeat(32)}\n`, {}, /^key {7}.*master\.key is not the key of this backup\. /m],
    ["a malformed key", "secret\n", {}, /^key {7}.*master\.key does not hold a master key/m],
    [
      "another key from outside",
      "",
      { NINEFOLD_MASTER_KEY: "ab".repeat(32) },
      /^key {7}NINEFOLD_MASTER_KEY is not the key/m,
    ],
  ];
  test.each(keys)(
    "with %s: reports what is required",
    async (_name, text, environment, said) => {
      const place = folder("keyed");
      if (text !== "") writeFileSync(join(place, "master.key"), text);
      const ended = await ninefold(["restore", copy, "--data", place, "--force"], environment);
      expect(ended.out).toMatch(said);
      expect(ended.out).not.toContain("abab");
      expect(ended.code).toBe(0);
    },
    TIMEOUT_MS,
  );
});

describe("rejected without a change", () => {
  const flip = (at: (size: number) => number) => {
    const bytes = readFileSync(copy);
    const place = at(bytes.length);
    bytes[place] = (bytes[place] ?? 0) ^ 0x10;
    return bytes;
  };
  const files: readonly (readonly [name: string, bytes: () => Uint8Array | string, message: RegExp])[] = [
    ["a bit of the header", () => flip(() => 3), /is damaged: its content has changed/],
    ["a bit of a page", () => flip((size) => Math.floor(size / 2)), /is damaged: its content has changed/],
    [
      "a bit of the last line",
      () => flip((size) => size - 150),
      /is damaged: it is truncated, or its end was changed/,
    ],
    ["a bit of the digest", () => flip((size) => size - 60), /is damaged: /],
    ["one cut off at its end", () => readFileSync(copy).subarray(0, -1), /is damaged: it is truncated/],
    [
      "one cut off in the middle",
      () => readFileSync(copy).subarray(0, 100_000),
      /is damaged: |cannot be read as a database/,
    ],
    [
      "one cut off between two pages",
      () => readFileSync(copy).subarray(0, 81_920),
      /is damaged: |cannot be read as a database/,
    ],
    ["an empty file", () => "", /is damaged: it is truncated/],
    ["a text", () => "Dear diary, ".repeat(1_000), /cannot be read as a database/],
    ["somebody else's database", () => foreign(), /is not a Ninefold database/],
    ["a newer version's", () => newer(), /was written by a newer version of Ninefold/],
  ];
  test.each(files)(
    "%s",
    async (_name, bytes, message) => {
      const file = stage.path("bad.db");
      writeFileSync(file, bytes());
      await expectRefused(file, ["--force"], message);
      // No folder is created for omitted files.
      const fresh = stage.path("refused-fresh");
      expect((await ninefold(["restore", file, "--data", fresh])).error).toMatch(message);
      expect(existsSync(fresh)).toBe(false);
    },
    TIMEOUT_MS,
  );

  const words: readonly (readonly [name: string, file: () => string, args: string[], message: RegExp])[] = [
    ["a file that is not there", () => stage.path("none.db"), ["--force"], /There is no file .*none\.db\.$/m],
    ["a folder", () => stage.folder, ["--force"], /is not a file\.$/m],
    [
      "over a database without --force",
      () => copy,
      [],
      /There is already a database in .*\. With --force it is renamed/,
    ],
    [
      "the folder's own database",
      () => stage.path("refused/ninefold.db"),
      ["--force"],
      /has a write-ahead log next to it, so it is the file of a server|is the database of/,
    ],
    ["an unknown option", () => copy, ["--verify"], /Unknown option '--verify'/],
    ["a second file", () => copy, ["other.db"], /Unexpected argument 'other\.db'/],
  ];
  test.each(words)(
    "%s",
    async (_name, file, args, message) => {
      await expectRefused(file(), args, message);
    },
    TIMEOUT_MS,
  );

  async function expectRefused(file: string, args: readonly string[], message: RegExp): Promise<void> {
    const place = folder("refused");
    const before = contents(place);
    const ended = await ninefold(["restore", file, "--data", place, ...args]);
    expect(ended.error).toMatch(message);
    expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
    expect(ended.out).toBe("");
    expect([1, 2]).toContain(ended.code);
    expect(contents(place)).toEqual(before);
  }

  test(
    "while a server runs on the folder",
    async () => {
      const server = await stage.start("data");
      try {
        const ended = await ninefold(["restore", copy, "--data", data, "--force"]);
        expect(ended.error).toMatch(
          /^ninefold: Another Ninefold process is using this data folder [^\n]+\n$/,
        );
        expect(ended.code).toBe(1);
        expect((await stage.client(server).get("/v1/meter/m/balance")).body["balance"]).toBe(14);
      } finally {
        await server.stop("SIGKILL");
      }
    },
    TIMEOUT_MS,
  );

  test(
    "on a full disk",
    async () => {
      const place = folder("full");
      const before = contents(place);
      const limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "sh", ...SOURCE_COMMAND];
      const ended = await runToEnd([...limited, "restore", copy, "--data", place, "--force"]);
      expect(ended.error).toMatch(
        /^ninefold: .*copy\.db could not be restored to .*full: [^\n]+ Nothing was changed\.\n$/,
      );
      expect(ended.code).toBe(1);
      expect(contents(place)).toEqual(before);
    },
    TIMEOUT_MS,
  );
});

function foreign(): Uint8Array {
  const path = stage.path("foreign-made.db");
  rmSync(path, { force: true });
  const db = new Database(path);
  db.run("CREATE TABLE diary (text)");
  db.close();
  return readFileSync(path);
}

function newer(): Uint8Array {
  const path = stage.path("newer-made.db");
  writeFileSync(path, readFileSync(copy).subarray(0, -160));
  const db = new Database(path);
  db.run("PRAGMA user_version = 1000");
  db.close();
  return readFileSync(path);
}

test(
  "a restore that is killed at any time leaves the complete old or new database",
  async () => {
    const timed = folder("timed");
    const begun = performance.now();
    expect((await ninefold(["restore", copy, "--data", timed, "--force"])).code).toBe(0);
    const lastsMs = performance.now() - begun;
    const found = new Set<number | null>();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const place = folder("killed");
      const child = Bun.spawn([...SOURCE_COMMAND, "restore", copy, "--data", place, "--force"], {
        env: plainEnvironment(),
        stdio: ["ignore", "ignore", "ignore"],
      });
      // Most of the time goes into the start of the process.
      await Bun.sleep(lastsMs * (0.5 + (0.5 * kill) / KILLS));
      child.kill("SIGKILL");
      await child.exited;
      const balance = balanceIn(join(place, "ninefold.db"));
      found.add(balance);
      expect([9, 14]).toContain(balance ?? 0);
      // It can be overwritten by another restore.
      if (kill % 4 === 0) {
        expect((await ninefold(["restore", copy, "--data", place, "--force"])).code).toBe(0);
        expect(readdirSync(place).filter((name) => name.includes(".partial"))).toEqual([]);
      }
    }
    expect(found.size).toBeGreaterThanOrEqual(1);
  },
  TIMEOUT_MS,
);
