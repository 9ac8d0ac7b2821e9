import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, openSync, readFileSync, renameSync, statSync, truncateSync, writeSync } from "node:fs";
import { rewriteLog } from "../../../src/kernel/storage/log-file.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, scanLog } from "../../../src/kernel/storage/log-scan.ts";
import { cutLastCommit, OfflineDatabase } from "../../../src/kernel/storage/offline.ts";
import { isStorageFailure } from "../../../src/kernel/storage/storage-failures.ts";
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

test("what an earlier process has left ends with its last whole commit", () => {
  write(3);
  const reader = new SqliteDatabase(storage.db.path);
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM filler").get();
  const before = readFileSync(logPath());
  truncateSync(logPath(), before.length + 10_000);
  rewriteLog(logPath());
  expect(readFileSync(logPath()).subarray(0, before.length).equals(before)).toBe(true);
  // The reader is in the way of moving it into the file.
  expect(storage.db.settleLog()).toBe("read");
  expect(readFileSync(logPath()).equals(before)).toBe(true);
  reader.close();
});

describe("the last commit of a database that nobody has open", () => {
  /** A copy of the database and its log, as a killed process leaves them. */
  function left(): string {
    const path = storage.scratch.path("left.db");
    copyFileSync(storage.db.path, path);
    copyFileSync(logPath(), `${path}-wal`);
    return path;
  }

  function rowsIn(path: string): number {
    using db = OfflineDatabase.readWithLog(path);
    return db.get<{ n: number }>("SELECT count(*) AS n FROM filler")?.n ?? -1;
  }

  test("is cut from the log, one after the other, while reading changes nothing", () => {
    write(3);
    const path = left();
    const files = () => [readFileSync(path), readFileSync(`${path}-wal`)];
    const before = files();
    expect(rowsIn(path)).toBe(3);
    expect(files()).toEqual(before);
    for (const rows of [2, 1, 0]) {
      expect(cutLastCommit(path)).toBeTrue();
      expect(rowsIn(path)).toBe(rows);
    }
    expect(cutLastCommit(storage.scratch.path("none.db"))).toBeFalse();
  });

  test("is cut although it has written pages without changing them", () => {
    storage.rows("CREATE TABLE others (value INTEGER)");
    storage.rows("INSERT INTO others VALUES (7)");
    write(1);
    storage.rows("PRAGMA wal_checkpoint(TRUNCATE)");
    storage.rows("BEGIN");
    write(1);
    storage.rows("DELETE FROM others WHERE value = 7");
    storage.rows("INSERT INTO others VALUES (7)");
    storage.rows("COMMIT");
    const path = left();
    expect(cutLastCommit(path)).toBeTrue();
    expect(rowsIn(path)).toBe(1);
  });

  test("is not cut after another program has moved it into the file", () => {
    write(3);
    storage.rows("PRAGMA wal_checkpoint(PASSIVE)");
    const path = left();
    expect(cutLastCommit(path)).toBeFalse();
    expect(rowsIn(path)).toBe(3);
  });
});
