import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServerProcess } from "../../../scripts/processes/server-process.ts";
import { Client } from "../../support/client.ts";
import { until } from "../../support/eventually.ts";
import { buildSyncedDisk, missingForSyncedDisk, SyncedDisk } from "../../support/synced-disk.ts";

const TIMEOUT_MS = 60_000;
const missing = missingForSyncedDisk();
if (missing !== null) console.log(`skipped: what failed syncs leave behind (${missing})`);

const folder = mkdtempSync(join(tmpdir(), "ninefold-shim-"));
let library = "";
beforeAll(() => {
  if (missing === null) library = buildSyncedDisk(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let disk: SyncedDisk;
let key = "";
afterEach(() => disk.remove());

/** A server with a meter of balance 5. */
async function started(...args: string[]): Promise<ServerProcess> {
  disk = new SyncedDisk(library);
  const server = await disk.start(...args);
  key = server.key ?? "";
  expect(await refill(server, 5)).toBe(200);
  return server;
}

async function refill(server: ServerProcess, amount: number): Promise<number> {
  return (await new Client(server.url, key).post("/v1/meter/m/refill", { amount })).status;
}

async function balance(server: ServerProcess): Promise<unknown> {
  return (await new Client(server.url, key).get("/v1/meter/m/balance")).body["balance"];
}

describe.skipIf(missing !== null)("a commit whose sync fails", () => {
  test(
    "is rejected, and absent after a kill although the disk confirms nothing",
    async () => {
      const server = await started();
      disk.fault("fail-wal");
      expect(await refill(server, 100)).toBe(503);
      expect(await balance(server)).toBe(5);
      await server.stop("SIGKILL");
      disk.heal("fail-wal");
      expect(await balance(await disk.start())).toBe(5);
    },
    TIMEOUT_MS,
  );

  test(
    "is rejected and absent after a power cut; later acknowledged changes are present",
    async () => {
      const server = await started();
      disk.fault("fail-wal-once");
      expect(await refill(server, 100)).toBe(503);
      // The rejection is sent only when the disk has confirmed that no part of the change remains.
      expect(await balance(await disk.startAfterPowerCut())).toBe(5);
      for (const amount of [1, 20]) expect(await refill(server, amount)).toBe(200);
      expect(await balance(await disk.startAfterPowerCut())).toBe(26);
      await server.stop("SIGKILL");
      expect(await balance(await disk.start())).toBe(26);
    },
    TIMEOUT_MS,
  );

  test(
    "is followed by rejections while the disk confirms nothing, and then by durable changes",
    async () => {
      const server = await started();
      disk.fault("fail-wal");
      for (let round = 0; round < 5; round += 1) expect(await refill(server, 100)).toBe(503);
      disk.heal("fail-wal");
      expect(await refill(server, 1)).toBe(200);
      expect(await balance(server)).toBe(6);
      expect(await balance(await disk.startAfterPowerCut())).toBe(6);
      expect(server.log).toContain("the log could not be cleaned after a failed commit");
      await server.stop("SIGKILL");
      expect(await balance(await disk.start())).toBe(6);
    },
    TIMEOUT_MS,
  );
});

/** The content of the log without preallocated space. Its size need not grow: it may have been restarted. */
function framesIn(): Buffer {
  const log = readFileSync(join(disk.data, "ninefold.db-wal"));
  let end = log.length;
  while (end > 0 && log[end - 1] === 0) end -= 1;
  return log.subarray(0, end);
}

/** A server that is killed when a change is completely in the log, and not yet on the disk. */
async function killedBeforeSync(): Promise<void> {
  const server = await started();
  disk.fault("hold-wal");
  const before = framesIn();
  const unanswered = refill(server, 100).catch(() => 0);
  await until(() => !framesIn().equals(before));
  await server.stop("SIGKILL");
  expect(await unanswered).toBe(0);
  disk.heal("hold-wal");
}

describe.skipIf(missing !== null)("after a kill between writing and syncing", () => {
  test(
    "the responses of the next start survive a power cut",
    async () => {
      await killedBeforeSync();
      const server = await disk.start();
      // Only the start may sync: neither a request's charge, nor a checkpoint.
      disk.fault("hold-wal");
      disk.fault("hold-db");
      const seen = await balance(server);
      expect(await balance(await disk.startAfterPowerCut())).toBe(seen);
      expect(seen).toBe(105);
    },
    TIMEOUT_MS,
  );

  test(
    "also while another process reads the log",
    async () => {
      await killedBeforeSync();
      const reader = new Database(join(disk.data, "ninefold.db"), { readwrite: true });
      reader.run("BEGIN");
      reader.query("SELECT count(*) FROM settings").get();
      const server = await disk.start();
      disk.fault("hold-wal");
      disk.fault("hold-db");
      expect(await balance(server)).toBe(105);
      expect(await balance(await disk.startAfterPowerCut())).toBe(105);
      expect(server.log).toContain("another process, such as a backup, reads the log");
      reader.close();
    },
    TIMEOUT_MS,
  );

  test(
    "a disk that confirms nothing fails the start with the name of the file",
    async () => {
      await killedBeforeSync();
      disk.fault("fail-wal");
      const error = await disk.start().catch(String);
      expect(error).toContain(`${join(disk.data, "ninefold.db")} cannot be opened (disk I/O error)`);
    },
    TIMEOUT_MS,
  );
});

test.skipIf(missing !== null)(
  "after a failed sync of the database all moved pages are written again before the log is discarded",
  async () => {
    const server = await started();
    disk.fault("fail-db");
    const path = join(disk.data, "ninefold.db");
    await until(async () => {
      expect(await refill(server, 1)).toBe(200);
      return server.log.includes("the write-ahead log cannot be moved into the database");
    });
    const log = statSync(`${path}-wal`).size;
    expect(log).toBeGreaterThan(0);
    disk.heal("fail-db");
    await until(async () => {
      await refill(server, 1);
      return server.log.includes("what a failed sync may have lost has been written again");
    });
    const acknowledged = await balance(server);
    await server.stop("SIGKILL");
    expect(await balance(await disk.start())).toBe(acknowledged);
  },
  TIMEOUT_MS,
);
