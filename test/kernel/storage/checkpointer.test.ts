import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, statSync } from "node:fs";
import { runCheckpoint } from "../../../src/kernel/storage/checkpoint.ts";
import {
  CHECKPOINT_FROM_BYTES,
  Checkpointer,
  WAL_RESTART_BYTES,
} from "../../../src/kernel/storage/checkpointer.ts";
import { type Change, Database } from "../../../src/kernel/storage/database.ts";
import { openFile } from "../../../src/kernel/storage/folders.ts";
import { OfflineDatabase } from "../../../src/kernel/storage/offline.ts";
import { SyncFailure } from "../../../src/kernel/storage/storage-failures.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { until } from "../../support/eventually.ts";
import { rejection, TestStorage, thrown } from "../support.ts";

const MIB = 1024 * 1024;
/** Large enough to be fast, small enough that no batch fills a WAL alone. */
const ROW = new Uint8Array(32 * 1024).fill(7);
const ROWS_PER_BATCH = 32;
/** Longer than the interval between two passes. */
const PASS_WAIT_MS = 500;

let storage: TestStorage;
let checkpointer: Checkpointer;
let insert: Change<[Uint8Array]>;

beforeEach(() => {
  storage = new TestStorage();
  storage.db.execute("CREATE TABLE filler (bytes BLOB)");
  insert = storage.db.change<[Uint8Array]>("INSERT INTO filler (bytes) VALUES (?)");
  checkpointer = new Checkpointer(storage.db, storage.writer, storage.log);
});
afterEach(() => {
  checkpointer.close();
  storage.close();
});

/** Writes this number of MiB in batches of one MiB; returns the largest size of the WAL file. */
async function write(mebibytes: number): Promise<number> {
  let largest = 0;
  for (let batch = 0; batch < mebibytes; batch += 1) {
    const units = Array.from({ length: ROWS_PER_BATCH }, () =>
      storage.writer.submit((tx) => insert(tx, ROW)),
    );
    await Promise.all(units);
    largest = Math.max(largest, walFileBytes());
  }
  return largest;
}

function walFileBytes(): number {
  return statSync(`${storage.db.path}-wal`).size;
}

/** Pages in the WAL, and how many of them are in the file. */
function walPages(): { log: number; checkpointed: number } {
  const [row] = storage.rows<{ log: number; checkpointed: number }>("PRAGMA wal_checkpoint(NOOP)");
  return row ?? { log: -1, checkpointed: -1 };
}

describe("checkpointer", () => {
  test("the worker moves written pages into the file while the server runs", async () => {
    const before = statSync(storage.db.path).size;
    await write(1);
    expect(walPages().checkpointed).toBe(0);
    await until(() => walPages().checkpointed === walPages().log);
    expect(walPages().log).toBeGreaterThan(200);
    expect(statSync(storage.db.path).size - before).toBeGreaterThan(MIB);
    expect(storage.log.lines).toEqual([]);
  });

  test("the WAL stays below twice WAL_RESTART_BYTES under a burst of writes, and loses nothing", async () => {
    const largest = await write(100);
    expect(largest).toBeGreaterThan(WAL_RESTART_BYTES / 2);
    expect(largest).toBeLessThan(2 * WAL_RESTART_BYTES);
    expect(storage.rows("SELECT count(*) AS rows FROM filler")).toEqual([{ rows: 100 * ROWS_PER_BATCH }]);
    expect(storage.rows("PRAGMA quick_check")).toEqual([{ quick_check: "ok" }]);
    expect(storage.log.lines).toEqual([]);
  }, 60_000);

  test("a reader that holds the WAL blocks nobody: the WAL grows meanwhile and shrinks afterwards", async () => {
    const reader = new Database(storage.db.path, "normal");
    reader.execute("BEGIN");
    reader.one("SELECT count(*) FROM filler")();
    // Whoever waits for the reader with this connection waits longer than the test may take.
    storage.db.execute("PRAGMA busy_timeout = 600000");
    const largest = await write(52);
    expect(largest).toBeGreaterThan(52 * MIB);
    expect(storage.log.messages("info")).toEqual([
      "the write-ahead log grows: a reader in another process needs it, such as a backup",
    ]);
    reader.execute("COMMIT");
    reader.close();
    await until(() => walPages().checkpointed === walPages().log);
    expect(storage.rows("SELECT count(*) AS rows FROM filler")).toEqual([{ rows: 52 * ROWS_PER_BATCH }]);
  }, 60_000);

  test("the worker begins at CHECKPOINT_FROM_BYTES, and stays", async () => {
    while (walPages().log * 4096 < CHECKPOINT_FROM_BYTES - 100 * 1024) {
      await storage.writer.submit((tx) => insert(tx, ROW));
    }
    await realDelay(PASS_WAIT_MS);
    expect(checkpointer.hasWorker).toBe(false);
    expect(walPages().checkpointed).toBe(0);
    await write(1);
    await until(() => walPages().checkpointed === walPages().log);
    expect(checkpointer.hasWorker).toBe(true);
    await write(2);
    await until(() => walPages().checkpointed === walPages().log);
    expect(storage.log.lines).toEqual([]);
  });

  test("nothing is moved when the log cannot be synced through the descriptor that knows of every failure", async () => {
    checkpointer.close();
    await write(1);
    using connection = new SqliteDatabase(storage.db.path, { readwrite: true, create: false });
    // It cannot be synced.
    using file = openFile("/dev/null", "r");
    const pass = { movedPages: 0, logPath: storage.db.logPath, logFile: file.fd };
    expect(thrown(() => runCheckpoint(connection, pass))).toBeInstanceOf(SyncFailure);
    expect(walPages().checkpointed).toBe(0);
    using log = storage.db.openLog();
    expect(runCheckpoint(connection, { ...pass, logFile: log.fd })).toMatchObject({ failure: null });
    expect(walPages().checkpointed).toBe(walPages().log);
  });

  test("no pass starts after its end", async () => {
    checkpointer.close();
    await write(1);
    await realDelay(250);
    expect(walPages().checkpointed).toBe(0);
  });

  test("with a commit log, only what it has confirmed is moved, however long it takes", async () => {
    checkpointer.close();
    checkpointer = new Checkpointer(storage.db, storage.writer, storage.log, true);
    let confirmation: Promise<void> | null = null;
    storage.writer.follow({
      beforeBatch: () => {},
      beforeCommit: () => {},
      afterCommit: () => {},
      get confirmation() {
        return confirmation;
      },
    });
    await write(5);
    const { promise, resolve } = Promise.withResolvers<void>();
    confirmation = promise;
    const confirmed = walPages().log;
    const last = storage.writer.submit((tx) => insert(tx, ROW));
    // The pass that the batches before have started holds this one back in the log. If it has moved all of them already, the
    // log begins anew, with this one alone.
    await until(() => walPages().log !== confirmed);
    await realDelay(PASS_WAIT_MS);
    const { log, checkpointed } = walPages();
    expect(checkpointed).toBeLessThanOrEqual(log > confirmed ? confirmed : 0);
    confirmation = null;
    resolve();
    await last;
    await write(2);
    await until(() => walPages().checkpointed === walPages().log);
    expect(storage.log.lines).toEqual([]);
  });

  test("what a commit log has rejected is undone at the end", async () => {
    checkpointer.close();
    let confirmation: Promise<void> | null = Promise.resolve();
    storage.writer.follow({
      beforeBatch: () => {},
      beforeCommit: () => {},
      afterCommit: () => {},
      get confirmation() {
        return confirmation;
      },
    });
    await storage.writer.submit((tx) => insert(tx, ROW));
    const log = Promise.withResolvers<void>();
    confirmation = log.promise;
    const rejected = rejection(storage.writer.submit((tx) => insert(tx, ROW)));
    const before = walPages().log;
    await until(() => walPages().log > before);
    log.reject(new Error("another leader"));
    expect(String(await rejected)).toContain("another leader");
    storage.writer.abandonUnconfirmed();
    // As the next process finds it.
    const copy = `${storage.db.path}-copy`;
    for (const suffix of ["", "-wal"]) copyFileSync(storage.db.path + suffix, copy + suffix);
    using found = OfflineDatabase.change(copy);
    expect(found.get<{ n: number }>("SELECT count(*) AS n FROM filler")?.n).toBe(1);
  });
});
