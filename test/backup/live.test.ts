import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { WAL_RESTART_BYTES } from "../../src/kernel/storage/checkpointer.ts";
import { NINEFOLD_COMMAND, plainEnvironment } from "../harness/processes/server-process.ts";
import type { Client } from "../support/client.ts";
import { BackupStage, ninefold, TIMEOUT_MS } from "./support.ts";

const stage = new BackupStage();
afterAll(() => stage.close());

const CLIENTS = 8;
const PAUSE_MS = 20;
/** Large enough that a few requests restart the log, repeatedly, while the copies are made. */
const NOTE = "n".repeat(200_000);
/** Written in large notes before each copy, and as much again during it. */
const SHARE_BYTES = 0.6 * WAL_RESTART_BYTES;
const BACKUPS = 2;
const KILLS = 10;

/** Writes from several concurrent clients until it is stopped; records what was acknowledged. */
class Load {
  readonly acknowledged = new Set<number>();
  private sent = 0;
  private over = false;
  private readonly running: Promise<void>[];
  /** Bytes of large notes so far. */
  written = 0;
  /** Notes are small from here on: on a slow machine no copy would finish under an endless load. */
  private until = 0;

  constructor(client: Client) {
    this.running = Array.from({ length: CLIENTS }, () => this.run(client));
  }

  /** Writes this number of bytes in large notes. */
  async write(bytes: number): Promise<void> {
    this.until = this.written + bytes;
    while (this.written < this.until) await Bun.sleep(5);
  }

  async end(): Promise<void> {
    this.over = true;
    await Promise.all(this.running);
  }

  /** Also when a test fails: the others of this file must not have its load as well. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  private async run(client: Client): Promise<void> {
    while (!this.over) {
      this.sent += 1;
      const number = this.sent;
      const answer =
        number % 2 === 0
          ? await client.post("/v1/meter/m/refill", { amount: number })
          : await client.post("/v1/witness/log", { log: { number, note: this.note() } });
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
      this.acknowledged.add(number);
      await Bun.sleep(PAUSE_MS);
    }
  }

  private note(): string {
    if (this.written >= this.until) return "small";
    this.written += NOTE.length;
    return NOTE;
  }
}

/** Content of a folder that is copied repeatedly: enough for a copy to take longer than its start. */
const SMALL_BYTES = 8 * 1024 * 1024;

/** The numbers that a copy holds. */
function numbersIn(path: string): Set<number> {
  const db = new Database(path, { readonly: true });
  try {
    const refills = db.query<{ number: number }, []>("SELECT amount AS number FROM meter_entries");
    const logs = db.query<{ number: number }, []>(
      "SELECT json_extract(log, '$.number') AS number FROM receipts",
    );
    return new Set([...refills.all(), ...logs.all()].map(({ number }) => number));
  } finally {
    db.close();
  }
}

function expectWhole(path: string): void {
  const db = new Database(path, { readonly: true });
  expect(db.query("PRAGMA integrity_check").values()).toEqual([["ok"]]);
  db.close();
  expect(numbersIn(path).size).toBeGreaterThan(0);
}

/** Temporary files of the copies whose names begin so. */
const partial = (of = "") =>
  readdirSync(stage.folder).filter((name) => name.startsWith(of) && name.includes(".partial"));

test(
  "copies under heavy writes contain all acknowledged changes, verify, and do not delay the server",
  async () => {
    const server = await stage.start();
    const client = stage.client(server);
    await client.post("/v1/witness/sys/init");
    await using load = new Load(client);
    for (let number = 1; number <= BACKUPS; number += 1) {
      await load.write(SHARE_BYTES);
      const before = new Set(load.acknowledged);
      const file = stage.path(`copy-${number}.db`);
      const args = ["backup", file, "--data", stage.path("data"), "--verify"];
      const [ended] = await Promise.all([ninefold(args), load.write(SHARE_BYTES)]);
      expect(ended.out.match(/^ok /gm)).toHaveLength(4);
      expect(ended.code).toBe(0);
      const held = numbersIn(file);
      expect([...before].filter((one) => !held.has(one))).toEqual([]);
      expect(before.size).toBeGreaterThan(100);
    }
    await load.end();
    expect(partial()).toEqual([]);
    // More than the log's size was written: it was restarted in between.
    expect(load.written).toBeGreaterThan(2 * WAL_RESTART_BYTES);
    expect(server.warnings).toBe("");
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "a backup that is killed at any time leaves the old file or none, and the next one removes its temporary files",
  async () => {
    // A separate folder, which is copied a dozen times.
    const data = stage.path("small");
    const server = await stage.start("small");
    const client = stage.client(server);
    await client.post("/v1/witness/sys/init");
    await using load = new Load(client);
    await load.write(SMALL_BYTES);
    const file = stage.path("killed.db");
    const kept = stage.path("copy-1.db");
    const before = readFileSync(kept);
    const whole = performance.now();
    expect((await ninefold(["backup", stage.path("timed.db"), "--data", data])).code).toBe(0);
    let durationMs = performance.now() - whole;
    let cutOff = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const target = kill % 2 === 0 ? file : kept;
      const child = Bun.spawn([...NINEFOLD_COMMAND, "backup", target, "--data", data, "--force"], {
        env: plainEnvironment(),
        stdio: ["ignore", "ignore", "ignore"],
      });
      const startedAt = performance.now();
      const isKilled = await Promise.race([
        Bun.sleep((durationMs * (kill + 1)) / (KILLS + 1)).then(() => true),
        child.exited.then(() => false),
      ]);
      child.kill("SIGKILL");
      await child.exited;
      // It was faster than the timed one: the next kills come earlier.
      if (!isKilled) durationMs = performance.now() - startedAt;
      const untouched = target === file ? !existsSync(file) : readFileSync(kept).equals(before);
      if (untouched) cutOff += 1;
      // Otherwise it had finished before.
      else expectWhole(target);
      rmSync(file, { force: true });
      writeFileSync(kept, before);
    }
    expect(cutOff).toBeGreaterThanOrEqual(3);
    for (const target of [file, kept]) {
      expect((await ninefold(["backup", target, "--data", data, "--force", "--verify"])).code).toBe(0);
    }
    await load.end();
    expect(partial()).toEqual([]);
    const held = numbersIn(kept);
    expect(held.size).toBeGreaterThan(numbersIn(stage.path("timed.db")).size);
  },
  TIMEOUT_MS,
);

test.each(["SIGTERM", "SIGINT"] as const)(
  "a backup that is stopped by %s reports it and removes its temporary files",
  async (signal) => {
    const child = Bun.spawn(
      [...NINEFOLD_COMMAND, "backup", stage.path("ended.db"), "--data", stage.path("data")],
      {
        env: plainEnvironment(),
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    // Its own: an earlier test may have left one when it failed.
    while (partial("ended").length === 0 && child.exitCode === null) await Bun.sleep(2);
    child.kill(signal);
    expect(await child.exited).toBe(1);
    expect(await child.stderr.text()).toBe("ninefold: The backup was interrupted. Nothing was written.\n");
    expect(readdirSync(stage.folder).filter((name) => name.startsWith("ended"))).toEqual([]);
  },
  TIMEOUT_MS,
);
