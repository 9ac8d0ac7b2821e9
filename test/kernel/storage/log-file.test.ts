import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { openSync, readFileSync, renameSync, statSync, truncateSync, writeSync } from "node:fs";
import { Checkpointer } from "../../../src/kernel/storage/checkpointer.ts";
import { isStorageFailure, isSyncFailure } from "../../../src/kernel/storage/database.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, scanLog } from "../../../src/kernel/storage/log-scan.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { TestStorage, thrown } from "../support.ts";

const PAGE_BYTES = 4096;
let storage: TestStorage;
beforeEach(() => {
  storage = new TestStorage();
  storage.db.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB)");
});
afterEach(() => storage.close());

const logPath = () => `${storage.db.path}-wal`;
const endOf = (frames: number) => LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + PAGE_BYTES);

function write(rows: number): void {
  for (let row = 0; row < rows; row += 1)
    storage.db.execute("INSERT INTO filler (bytes) VALUES (randomblob(9000))");
}

/** The pages whose newest frame is one of the first `moved` of a number of frames. */
function movedPages(frames: number, moved: number): number[] {
  const log = readFileSync(logPath());
  const newest = new Map<number, number>();
  for (let frame = 0; frame < frames; frame += 1) newest.set(log.readUInt32BE(endOf(frame)), frame);
  return [...newest].filter(([, frame]) => frame < moved).map(([page]) => page);
}

describe("truncating the log", () => {
  test("removes only what follows the valid frames", () => {
    write(3);
    const { log } = storage.db.logPages();
    const before = readFileSync(logPath());
    expect(before).toHaveLength(endOf(log));
    // A COMMIT whose sync has failed leaves frames after those that the index knows.
    const file = openSync(logPath(), "r+");
    writeSync(file, before.subarray(endOf(0), endOf(2)), 0, endOf(2) - endOf(0), endOf(log));
    storage.db.cutLog();
    expect(readFileSync(logPath()).equals(before)).toBe(true);
    storage.db.cutLog();
    expect(readFileSync(logPath()).equals(before)).toBe(true);
    write(1);
    expect(scanLog(logPath())?.frames).toBe(storage.db.logPages().log);
    expect(storage.rows("PRAGMA quick_check")).toEqual([{ quick_check: "ok" }]);
  });

  test("leaves an emptied log empty", () => {
    write(1);
    storage.rows("PRAGMA wal_checkpoint(TRUNCATE)");
    storage.db.cutLog();
    expect(statSync(logPath()).size).toBe(0);
    write(1);
    expect(storage.rows("SELECT count(*) AS rows FROM filler")).toEqual([{ rows: 2 }]);
  });

  test("does not touch a replaced file", () => {
    write(1);
    storage.db.settleLog();
    write(1);
    renameSync(logPath(), `${logPath()}.moved`);
    const other = "somebody else's log, which is longer than nothing";
    Bun.write(logPath(), other);
    const error = thrown(() => storage.db.cutLog());
    expect(isStorageFailure(error)).toBe(true);
    expect(String(error)).toContain("was replaced");
    expect(readFileSync(logPath(), "utf8")).toBe(other);
    renameSync(`${logPath()}.moved`, logPath());
  });
});

describe("pages lost by a failed sync of a checkpoint", () => {
  test("are written again from the log, only those that were moved", () => {
    write(5);
    // A reader's transaction: newer frames are not moved.
    const reader = new SqliteDatabase(storage.db.path);
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM filler").get();
    write(5);
    storage.rows("PRAGMA wal_checkpoint(PASSIVE)");
    reader.run("COMMIT");
    reader.close();
    const { log, moved } = storage.db.logPages();
    expect(moved).toBeGreaterThan(5);
    expect(log).toBeGreaterThan(moved);
    const pages = movedPages(log, moved);
    expect(pages.length).toBeGreaterThan(5);
    const whole = readFileSync(storage.db.path);
    const file = openSync(storage.db.path, "r+");
    for (const number of pages)
      writeSync(file, Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, (number - 1) * PAGE_BYTES);
    expect(readFileSync(storage.db.path).equals(whole)).toBe(false);
    storage.db.rewriteLog();
    expect(readFileSync(storage.db.path).equals(whole)).toBe(true);
    expect(scanLog(logPath())?.frames).toBe(storage.db.logPages().log);
    expect(storage.rows("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  test("block further passes and a restart of the log until then", async () => {
    const checkpointer = new Checkpointer(storage.db, storage.writer, storage.log);
    const restarts: string[] = [];
    const failure = diskFailure();
    expect(isSyncFailure(failure)).toBe(true);
    storage.db.withBusyTimeout = () => {
      restarts.push("tried");
      throw failure;
    };
    let rewritten = 0;
    // For any duration of the test: lost data is written again when it reports the loss.
    let isFailing = true;
    storage.db.rewriteLog = () => {
      rewritten += 1;
      if (isFailing) throw new Error("still failing");
    };
    const insert = storage.db.change<[Uint8Array]>("INSERT INTO filler (bytes) VALUES (?)");
    const row = new Uint8Array(1024 * 1024);
    const mebibytes = async (count: number) => {
      for (let at = 0; at < count; at += 1) await storage.writer.submit((tx) => insert(tx, row));
    };
    await mebibytes(1);
    // Frames that are newer than a reader's transaction are not moved: SQLite restarts a log only after it was moved
    // completely.
    const reader = new SqliteDatabase(storage.db.path);
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM filler").get();
    while (restarts.length === 0) {
      await mebibytes(4);
      await realDelay(20);
    }
    const { moved, log } = storage.db.logPages();
    expect(moved).toBeLessThan(log);
    reader.run("COMMIT");
    reader.close();
    await mebibytes(60);
    await realDelay(300);
    expect(storage.db.logPages().log).toBeGreaterThan(log);
    expect(storage.db.logPages().moved).toBe(moved);
    expect(restarts).toHaveLength(1);
    // At the end another attempt is made; if it had failed, the log would not be removed.
    const before = rewritten;
    isFailing = false;
    checkpointer.close();
    expect(rewritten).toBe(before + 1);
    expect(storage.log.messages("info")).toContain("what a failed sync may have lost has been written again");
  }, 60_000);
});

/** What SQLite throws when the disk fails: a real error, of a log that was truncated without its knowledge. */
function diskFailure(): unknown {
  const path = storage.scratch.path("cut.db");
  const db = new SqliteDatabase(path);
  db.run("PRAGMA journal_mode = WAL");
  db.run("CREATE TABLE rows (bytes BLOB)");
  const other = new SqliteDatabase(path);
  truncateSync(`${path}-wal`, LOG_HEADER_BYTES);
  const error = thrown(() => other.query("SELECT * FROM rows").all());
  other.close();
  db.close();
  return error;
}
