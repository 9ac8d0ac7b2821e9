import { Database } from "bun:sqlite";
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { Database as StorageDatabase } from "../../../src/kernel/storage/database.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, scanLog } from "../../../src/kernel/storage/log-scan.ts";
import { Scratch } from "../support.ts";

const FRAME_BYTES = FRAME_HEADER_BYTES + 4096;
const ROWS = 40;
const scratch = new Scratch();
afterAll(() => scratch.remove());

let files = 0;
let path = "";
let log = "";
let bytes = Buffer.alloc(0);

/** A log of 41 commits, the first of two frames and each of the others of 1 to 4; the last one is number 41. */
beforeEach(() => {
  files += 1;
  path = scratch.path(`scan-${files}.db`);
  log = `${path}-wal`;
  const db = new Database(path, { create: true });
  for (const pragma of ["journal_mode = WAL", "wal_autocheckpoint = 0", "synchronous = OFF"])
    db.run(`PRAGMA ${pragma}`);
  db.run("CREATE TABLE rows (id INTEGER PRIMARY KEY, bytes BLOB)");
  for (let row = 0; row < ROWS; row += 1)
    db.run(`INSERT INTO rows (bytes) VALUES (randomblob(${(row % 4) * 4_000}))`);
  // Copied as a kill would leave it: closing would remove the log.
  copyFileSync(path, `${path}.kept`);
  copyFileSync(log, `${log}.kept`);
  db.close();
  copyFileSync(`${path}.kept`, path);
  copyFileSync(`${log}.kept`, log);
  bytes = readFileSync(log);
});

/** Number of rows that SQLite finds. */
function rowsFound(): number {
  const db = new Database(path);
  try {
    return db.query<{ rows: number }, []>("SELECT count(*) AS rows FROM rows").get()?.rows ?? -1;
  } finally {
    db.close();
  }
}

const framesIn = () => (bytes.length - LOG_HEADER_BYTES) / FRAME_BYTES;
const startOf = (frame: number) => LOG_HEADER_BYTES + (frame - 1) * FRAME_BYTES;
const endsCommit = (frame: number) => bytes.readUInt32BE(startOf(frame) + 4) !== 0;

/** Frames that end a commit. */
function commitEnds(): number[] {
  return Array.from({ length: framesIn() }, (_, index) => index + 1).filter(endsCommit);
}

/** Flips a bit and writes the log. */
function damage(at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(log, bytes);
}

describe("a log", () => {
  test("that is missing, empty or without frames is read as absent", () => {
    expect(scanLog(`${path}-none`)).toBeNull();
    truncateSync(log, 0);
    expect(scanLog(log)).toBeNull();
    truncateSync(log, LOG_HEADER_BYTES);
    expect(scanLog(log)).toBeNull();
  });

  test("that is complete has the frames that SQLite finds", () => {
    const framesBefore = commitEnds().at(-2) ?? 0;
    expect(scanLog(log)).toEqual({ frames: framesIn(), framesBefore, commits: ROWS + 1, damage: null });
    expect(rowsFound()).toBe(ROWS);
  });

  test("with checksums in the other byte order is read", () => {
    // As a machine with the other byte order writes it: every word's bytes are swapped for the checksum, the headers
    // are unchanged.
    const turned = turnedLog(bytes);
    writeFileSync(log, turned);
    expect(rowsFound()).toBe(ROWS);
    writeFileSync(log, turned);
    const framesBefore = commitEnds().at(-2) ?? 0;
    expect(scanLog(log)).toEqual({ frames: framesIn(), framesBefore, commits: ROWS + 1, damage: null });
  });

  test("cut anywhere is torn at its end, which is not damage", () => {
    for (let at = bytes.length - 1; at > LOG_HEADER_BYTES; at -= 1_009) {
      truncateSync(log, at);
      const left = Math.floor((at - LOG_HEADER_BYTES) / FRAME_BYTES);
      const whole = commitEnds().filter((end) => end <= left);
      const [framesBefore = 0, frames = 0] = [whole.at(-2), whole.at(-1)];
      expect(scanLog(log)).toEqual({ frames, framesBefore, commits: whole.length, damage: null });
    }
  });

  test("whose last commit lacks frames is torn, which is not damage", () => {
    const ends = commitEnds();
    const [framesBefore = 0, before = 0] = ends.slice(-3);
    const last = framesIn();
    expect(last - before).toBeGreaterThan(2);
    for (let frame = before + 1; frame <= last; frame += 1) {
      damage(startOf(frame) + 2_000);
      expect(scanLog(log)).toEqual({ frames: before, framesBefore, commits: ends.length - 1, damage: null });
      damage(startOf(frame) + 2_000);
    }
  });

  test("that restarted over a longer one excludes the old frames", () => {
    const old = Buffer.from(bytes);
    const db = new Database(path);
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    db.run("INSERT INTO rows (bytes) VALUES (zeroblob(10))");
    const fresh = readFileSync(log);
    db.close();
    writeFileSync(log, Buffer.concat([fresh, old.subarray(fresh.length)]));
    expect(scanLog(log)).toEqual({
      frames: (fresh.length - LOG_HEADER_BYTES) / FRAME_BYTES,
      framesBefore: 0,
      commits: 1,
      damage: null,
    });
  });

  test("with remains of rejected commits behind its end is not damaged", () => {
    // A commit's frames are repeated after the end: their chain is valid only with their own mark.
    const ends = commitEnds();
    const from = ends.at(-3) ?? 0;
    const to = ends.at(-2) ?? 0;
    writeFileSync(log, Buffer.concat([bytes, bytes.subarray(startOf(from + 1), startOf(to + 1))]));
    const framesBefore = commitEnds().at(-2) ?? 0;
    expect(scanLog(log)).toEqual({ frames: framesIn(), framesBefore, commits: ROWS + 1, damage: null });
  });
});

describe("a log damaged in its middle", () => {
  test.each([
    ["a page", 24 + 1_000],
    ["a page's number", 3],
    ["a size of the database", 7],
    ["a salt", 9],
    ["a checksum", 17],
  ])("in %s: is detected, although SQLite silently drops the rest", (_, offset) => {
    const ends = commitEnds();
    const frame = (ends[19] ?? 0) + 1;
    damage(startOf(frame) + offset);
    const scan = scanLog(log);
    expect(scan?.frames).toBe(ends[19] ?? 0);
    expect(scan?.commits).toBe(20);
    expect(scan?.damage).toMatchObject({ atFrame: frame, lostFrames: framesIn() - (ends[19] ?? 0) });
    // A commit of one frame whose own mark or salt is damaged cannot be recognized reliably.
    expect(scan?.damage?.lostCommits).toBeGreaterThanOrEqual(ROWS + 1 - 20 - 1);
    expect(rowsFound()).toBe(19);
  });

  test("is detected anywhere before the last two commits", () => {
    const ends = commitEnds();
    for (let frame = 1; frame <= (ends.at(-3) ?? 0); frame += 1) {
      damage(startOf(frame) + 24 + 77);
      expect(scanLog(log)?.damage?.atFrame).toBe(frame);
      damage(startOf(frame) + 24 + 77);
    }
  });

  test.each([0, 8, 16, 24])("in its header, at byte %d", (at) => {
    damage(at + 3);
    expect(scanLog(log)?.damage?.atFrame).toBe(0);
    expect(scanLog(log)?.frames).toBe(0);
  });

  test("in two places", () => {
    const ends = commitEnds();
    damage(startOf((ends[10] ?? 0) + 1) + 100);
    damage(startOf((ends[30] ?? 0) + 1) + 100);
    expect(scanLog(log)).toMatchObject({
      commits: 11,
      damage: { atFrame: (ends[10] ?? 0) + 1, lostFrames: framesIn() - (ends[10] ?? 0) },
    });
  });
});

/** The same log with its checksums calculated over words of the other order of bytes. */
function turnedLog(from: Buffer): Buffer {
  const log = Buffer.from(from);
  const sums: [number, number] = [0, 0];
  const add = (start: number, end: number) => {
    for (let at = start; at < end; at += 8) {
      sums[0] = (sums[0] + log.readUInt32BE(at) + sums[1]) >>> 0;
      sums[1] = (sums[1] + log.readUInt32BE(at + 4) + sums[0]) >>> 0;
    }
  };
  const put = (at: number) => {
    log.writeUInt32BE(sums[0], at);
    log.writeUInt32BE(sums[1], at + 4);
  };
  log.writeUInt32BE(0x377f0683, 0);
  add(0, 24);
  put(24);
  for (let at = LOG_HEADER_BYTES; at < log.length; at += FRAME_BYTES) {
    add(at, at + 8);
    add(at + FRAME_HEADER_BYTES, at + FRAME_BYTES);
    put(at + 16);
  }
  return log;
}

test("damage in the first dropped frame is gone after the start", () => {
  damage(startOf(1) + FRAME_HEADER_BYTES);
  const storage = new StorageDatabase(path, "full");
  expect(storage.settleLog()).toBeNull();
  expect(scanLog(log)).toBeNull();
  storage.close();
});

test("accepted damage is gone after the start, also while another process reads the log", () => {
  const [, ...ends] = commitEnds();
  damage(startOf(ends[9] ?? 0) + FRAME_HEADER_BYTES);
  const reader = new Database(path);
  reader.run("BEGIN; SELECT * FROM rows");
  const storage = new StorageDatabase(path, "full");
  expect(storage.settleLog()).toBe("read");
  // After the next commits, the old ones would look like damage again.
  expect(scanLog(log)).toMatchObject({ commits: 10, damage: null });
  reader.close();
  storage.close();
  expect(rowsFound()).toBe(9);
});
