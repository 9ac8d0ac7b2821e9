import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { scanLog } from "../../src/kernel/storage/log-scan.ts";
import { Client } from "../support/client.ts";
import { Binaries, fingerprint, operatorOf, runToEnd, TIMEOUT_MS } from "./support.ts";

const FRAME_BYTES = 24 + 4096;
const binaries = new Binaries();
afterAll(() => binaries.close());

/** A folder as a kill leaves it, with a log that holds so many changes, one after the other, and nothing else. */
async function killed(changes: number): Promise<{ data: string; key: string }> {
  const data = binaries.data();
  const first = await binaries.start(["--data", data]);
  await first.stop();
  const key = first.key ?? "";
  const server = await binaries.start(["--data", data]);
  const operator = new Client(server.url, key);
  const reader = new Database(join(data, "ninefold.db"));
  for (let change = 0; change < changes; change += 1) {
    expect((await operator.post("/v1/meter/m/refill", { amount: 1 })).status).toBe(200);
    // As long as it reads the log is not begun anew, however much time the checkpoints have.
    if (change === 0) reader.run("BEGIN; SELECT count(*) FROM settings");
  }
  reader.close();
  await server.stop("SIGKILL");
  const scan = scanLog(join(data, "ninefold.db-wal"));
  expect(scan?.commits).toBeGreaterThanOrEqual(changes);
  return { data, key };
}

async function balance(
  data: string,
  key: string,
  ...args: string[]
): Promise<{ balance: unknown; log: string }> {
  const server = await binaries.start(["--data", data, ...args]);
  const { body } = await new Client(server.url, key).get("/v1/meter/m/balance");
  await server.stop();
  return { balance: body["balance"], log: server.warnings };
}

/** A start is refused in one line that says all of this, and changes nothing; so does doctor. */
async function expectRefusal(data: string, ...says: string[]): Promise<void> {
  const before = lasting(data);
  const ended = await runToEnd(["serve", "--port", "0", "--data", data]);
  expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
  for (const text of says) expect(ended.error).toContain(text);
  expect(ended).toMatchObject({ code: 1, out: "" });
  const doctor = await runToEnd(["doctor", "--data", data, "--port", "0", "--dns-name", "localhost"]);
  expect(doctor.code).toBe(1);
  expect(doctor.out).toMatch(/failed {3}database/);
  const backup = join(binaries.folder, "none.db");
  expect((await runToEnd(["backup", backup, "--data", data])).code).toBe(1);
  expect(lasting(data)).toEqual(before);
}

/** The files that hold something: not the lock, nor the log's index, which SQLite builds anew to read it. */
function lasting(data: string): Record<string, string> {
  const files = Object.entries(fingerprint(data));
  return Object.fromEntries(files.filter(([name]) => !/lock|-shm$/.test(name)));
}

test(
  "a database that is missing or empty next to its log is rejected, and put back it has everything",
  async () => {
    const { data, key } = await killed(20);
    const path = join(data, "ninefold.db");
    const kept = join(binaries.folder, "kept.db");
    copyFileSync(path, kept);
    rmSync(path);
    await expectRefusal(
      data,
      `${path} is missing, but its log ${path}-wal exists`,
      "Put the database file back",
    );
    writeFileSync(path, "");
    await expectRefusal(data, `${path} is empty, but its log ${path}-wal exists`);
    copyFileSync(kept, path);
    expect((await balance(data, key)).balance).toBe(20);
  },
  TIMEOUT_MS,
);

test(
  "restore --force keeps the log of an empty database, and a damaged one, as they are",
  async () => {
    const { data, key } = await killed(20);
    const backup = join(binaries.folder, "backup.db");
    const copy = binaries.data();
    cpSync(data, copy, { recursive: true });
    expect((await runToEnd(["backup", backup, "--data", copy])).code).toBe(0);
    const path = join(data, "ninefold.db");
    const log = readFileSync(`${path}-wal`);
    for (const harm of [() => truncateSync(path, 0), () => undefined]) {
      harm();
      const bytes = Buffer.from(log);
      bytes[32 + 12 * FRAME_BYTES + 99] = (bytes[32 + 12 * FRAME_BYTES + 99] ?? 0) ^ 1;
      writeFileSync(`${path}-wal`, bytes);
      const restored = await runToEnd(["restore", backup, "--data", data, "--force"]);
      expect(restored.code).toBe(0);
      const aside = readdirSync(data).filter((name) => /replaced-.*-wal$/.test(name));
      expect(aside).toHaveLength(1);
      expect(readFileSync(join(data, aside[0] ?? "")).equals(bytes)).toBe(true);
      rmSync(join(data, aside[0] ?? ""));
    }
    expect((await balance(data, key)).balance).toBe(20);
  },
  TIMEOUT_MS,
);

test(
  "a log that was damaged in its middle is refused; given up, the changes before it are there and what is lost is said",
  async () => {
    const { data, key } = await killed(40);
    const path = join(data, "ninefold.db-wal");
    const bytes = readFileSync(path);
    const frame = Math.floor((scanLog(path)?.frames ?? 0) / 2);
    const at = 32 + (frame - 1) * FRAME_BYTES + 1_000;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    await expectRefusal(
      data,
      `${path} is damaged at frame ${frame}: at least `,
      "ninefold restore FILE --force",
      "ninefold serve --accept-damaged-log",
    );
    const copy = binaries.data();
    cpSync(data, copy, { recursive: true });
    const accepted = await balance(data, key, "--accept-damaged-log");
    expect(Number(accepted.balance)).toBeLessThan(40);
    const warning = JSON.parse(accepted.log.split("\n").find((line) => line.includes("damaged log")) ?? "{}");
    expect(warning).toMatchObject({ level: "warn", file: path, frame });
    expect(warning.lost_commits).toBeGreaterThan(5);
    // The next start is one like any other.
    expect(await balance(data, key)).toEqual({ balance: accepted.balance, log: "" });
    // Without a sync for each commit a power cut leaves such holes: the start says what is lost.
    const unsynced = await balance(copy, key, "--durability", "normal");
    expect(unsynced.balance).toBe(accepted.balance);
    expect(unsynced.log).toContain("the log has a hole, as after a power cut");
  },
  TIMEOUT_MS,
);

test(
  "a log that is torn at its end is accepted as usual",
  async () => {
    const { data, key } = await killed(20);
    const path = join(data, "ninefold.db-wal");
    truncateSync(path, statSync(path).size - 100);
    expect(Number((await balance(data, key)).balance)).toBeGreaterThanOrEqual(19);
  },
  TIMEOUT_MS,
);

test(
  "a damaged database is reported with its file and the next step, at the start and while it is used",
  async () => {
    const { data, key } = await killed(3);
    const path = join(data, "ninefold.db");
    const { balance: whole } = await balance(data, key);
    expect(whole).toBe(3);
    const root = rootPageOf(path, "meters");
    const bytes = readFileSync(path);
    writeFileSync(
      path,
      Buffer.concat([
        bytes.subarray(0, (root - 1) * 4096),
        Buffer.alloc(4096, 0xff),
        bytes.subarray(root * 4096),
      ]),
    );
    const cure = "ninefold restore FILE --force";
    const server = await binaries.start(["--data", data]).catch(String);
    if (typeof server === "string") {
      expect(server).toContain(`${path} is damaged`);
      expect(server).toContain(cure);
    } else {
      for (let round = 0; round < 2; round += 1) await new Client(server.url, key).get("/v1/meter/m/balance");
      await server.stop();
      const lines = server.log.split("\n").filter((line) => line.includes("the database is damaged"));
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({ level: "error", file: path });
      expect(lines[0]).toContain(cure);
    }
    writeFileSync(path, Buffer.concat([Buffer.alloc(100, 0x20), bytes.subarray(100)]));
    const ended = await runToEnd(["serve", "--port", "0", "--data", data]);
    expect(ended.error).toMatch(/^ninefold: [^\n]+\n$/);
    expect(ended.error).toContain(path);
    expect(ended.error).toContain(cure);
  },
  TIMEOUT_MS,
);

function rootPageOf(path: string, table: string): number {
  const db = new Database(path, { readonly: true });
  try {
    const sql = "SELECT rootpage FROM sqlite_master WHERE name = ?";
    return db.query<{ rootpage: number }, [string]>(sql).get(table)?.rootpage ?? 0;
  } finally {
    db.close();
  }
}

test(
  "a key without a database starts a new server, with one line of warning",
  async () => {
    const data = binaries.data();
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(join(data, "master.key"), `${"ab".repeat(32)}\n`, { mode: 0o600 });
    const server = await binaries.start(["--data", data]);
    expect((await operatorOf(server).get("/v1/meter/balance")).status).toBe(200);
    await server.stop();
    const lines = server.warnings.split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "{}")).toMatchObject({
      level: "warn",
      message: "there is a master key, but no database: a new database is created",
      master_key: join(data, "master.key"),
    });
    const again = await binaries.start(["--data", data]);
    await again.stop();
    expect(again.warnings).toBe("");
  },
  TIMEOUT_MS,
);
