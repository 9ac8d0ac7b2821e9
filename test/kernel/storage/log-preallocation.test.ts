import { Database as SqliteDatabase } from "bun:sqlite";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  CHECKPOINT_FROM_BYTES,
  Checkpointer,
  WAL_RESTART_BYTES,
} from "../../../src/kernel/storage/checkpointer.ts";
import { type Change, Database, type Durability } from "../../../src/kernel/storage/database.ts";
import { copyLiveDatabase } from "../../../src/kernel/storage/live-copy.ts";
import { preallocateLog } from "../../../src/kernel/storage/log-preallocation.ts";
import { FRAME_HEADER_BYTES, LOG_HEADER_BYTES, scanLog } from "../../../src/kernel/storage/log-scan.ts";
import { Writer } from "../../../src/kernel/storage/writer.ts";
import { createSystemClock, realDelay } from "../../../src/kernel/time/clock.ts";
import { until } from "../../support/eventually.ts";
import { memoryDisk } from "../../support/memory-disk.ts";
import { KeptLog, Scratch } from "../support.ts";

const MIB = 1024 * 1024;
const KIB = 1024;
const FRAME_BYTES = FRAME_HEADER_BYTES + 4096;
/** The WAL size from which space is preallocated, and how much, as in the checkpointer. */
const PREALLOCATE_FROM_BYTES = MIB;
const PREALLOCATED_BYTES = 8 * MIB;
/** Longer than the interval between two passes of the worker. */
const PASS_WAIT_MS = 500;
/** Space that stays free on its disk. */
const FREE_BYTES_MIN = 256 * MIB;
/** Written in one operation. */
const SLICE_BYTES = 128 * KIB;
const wanted = () => false;

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

describe("preallocating a log", () => {
  test("appends zeros up to the length without changing existing bytes", () => {
    const path = scratch.path("log");
    const before = Buffer.alloc(5_000, 7);
    writeFileSync(path, before);
    preallocateLog(path, 3 * SLICE_BYTES, wanted);
    const after = readFileSync(path);
    expect(after).toHaveLength(before.length + 3 * SLICE_BYTES);
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect(after.subarray(before.length).every((byte) => byte === 0)).toBe(true);
    preallocateLog(path, after.length, wanted);
    expect(statSync(path).size).toBe(after.length);
    preallocateLog(path, after.length + 1, wanted);
    expect(statSync(path).size).toBe(after.length + SLICE_BYTES);
  });

  test("stops between two slices when the server closes", () => {
    const path = scratch.path("log");
    writeFileSync(path, "");
    let asked = 0;
    preallocateLog(path, 10 * SLICE_BYTES, () => ++asked > 2);
    expect(statSync(path).size).toBe(2 * SLICE_BYTES);
  });

  test("creates no log, and ignores one that cannot be opened", () => {
    preallocateLog(scratch.path("none"), MIB, wanted);
    expect(existsSync(scratch.path("none"))).toBe(false);
    mkdirSync(scratch.path("folder"));
    preallocateLog(scratch.path("folder"), MIB, wanted);
  });

  // None of it is used before it is written.
  const memory = memoryDisk(FREE_BYTES_MIN / MIB + 1);
  afterAll(() => memory?.remove());
  test.skipIf(memory === null)("leaves the last space of a disk to the data", () => {
    const path = join(memory?.folder ?? "", "log");
    writeFileSync(path, "frames");
    preallocateLog(path, 8 * MIB, wanted);
    const { size } = statSync(path);
    expect(size).toBeGreaterThan(MIB - 2 * SLICE_BYTES);
    expect(size).toBeLessThan(MIB + 2 * SLICE_BYTES);
    preallocateLog(path, 8 * MIB, wanted);
    expect(statSync(path).size).toBe(size);
    expect(readFileSync(path, "utf8").startsWith("frames")).toBe(true);
  });
});

/** A database whose log a checkpointer manages. */
class Kept {
  readonly db: Database;
  readonly log = new KeptLog();
  readonly writer: Writer;
  readonly checkpointer: Checkpointer;
  private readonly insert: Change<[number, number]>;
  rows = 0;

  constructor(path: string, durability: Durability) {
    this.db = new Database(path, durability);
    // This test does not cut the power.
    this.db.execute("PRAGMA synchronous = OFF");
    this.db.execute("CREATE TABLE IF NOT EXISTS filler (id INTEGER PRIMARY KEY, bytes BLOB)");
    this.writer = new Writer(this.db, createSystemClock(), this.log);
    this.checkpointer = new Checkpointer(this.db, this.writer, this.log);
    this.insert = this.db.change("INSERT INTO filler (id, bytes) VALUES (?, randomblob(?))");
  }

  /** Commits rows of this number of bytes each, one by one. */
  async write(rows: number, bytes: number): Promise<void> {
    for (let row = 0; row < rows; row += 1) {
      this.rows += 1;
      await this.writer.submit((tx) => this.insert(tx, this.rows, bytes));
    }
  }

  get fileBytes(): number {
    return statSync(this.db.logPath).size;
  }

  get unmovedBytes(): number {
    const { log, moved } = this.db.logPages();
    return (log - moved) * FRAME_BYTES;
  }

  get writtenBytes(): number {
    return LOG_HEADER_BYTES + this.db.logPages().log * FRAME_BYTES;
  }

  close(): void {
    this.writer.close();
    this.checkpointer.close();
    this.db.close();
  }
}

/** Resolves when the worker has moved everything, so that its last pass has ended. */
function moved({ db }: Kept): Promise<void> {
  return until(() => db.logPages().moved === db.logPages().log);
}

describe("the preallocated space", () => {
  let kept: Kept;
  afterEach(() => kept.close());

  test("exists from 1 MiB of log on", async () => {
    kept = new Kept(scratch.path("preallocated.db"), "full");
    while (kept.writtenBytes + 6 * FRAME_BYTES < PREALLOCATE_FROM_BYTES) await kept.write(1, 4_000);
    await realDelay(PASS_WAIT_MS);
    expect(kept.fileBytes).toBe(kept.writtenBytes);
    await kept.write(1, 64 * KIB);
    await moved(kept);
    expect(kept.fileBytes).toBeGreaterThanOrEqual(kept.checkpointer.walBytes + PREALLOCATED_BYTES);
    expect(kept.fileBytes).toBeLessThan(kept.checkpointer.walBytes + PREALLOCATED_BYTES + 2 * SLICE_BYTES);
    expect(kept.log.lines).toEqual([]);
  });

  test("can be written to during the preallocation without losing a frame", async () => {
    kept = new Kept(scratch.path("busy.db"), "full");
    let inPreallocated = 0;
    while (kept.rows < 3_000) {
      await kept.write(20, 16 * KIB);
      if (kept.fileBytes > kept.writtenBytes) inPreallocated += 1;
      expect(kept.checkpointer.walBytes).toBeLessThan(2 * WAL_RESTART_BYTES);
    }
    expect(inPreallocated).toBeGreaterThan(10);
    expect(scanLog(kept.db.logPath)).toMatchObject({ frames: kept.db.logPages().log, damage: null });
    // What a pass leaves that ran beside the last writes can be too little for another one.
    await until(() => kept.unmovedBytes < CHECKPOINT_FROM_BYTES);
    expect(kept.fileBytes).toBeGreaterThanOrEqual(WAL_RESTART_BYTES);
    expect(kept.fileBytes).toBeLessThan(2 * WAL_RESTART_BYTES);
    expect(kept.db.number("SELECT count(*) AS n FROM filler WHERE length(bytes) = 16384")()).toBe(3_000);
    expect(kept.db.one<object>("PRAGMA quick_check")()).toEqual({ quick_check: "ok" });
    expect(kept.log.lines).toEqual([]);
  }, 60_000);

  test("does not exist without syncs of commits", async () => {
    kept = new Kept(scratch.path("normal.db"), "normal");
    await kept.write(1, 2 * MIB);
    await moved(kept);
    expect(kept.fileBytes).toBe(kept.writtenBytes);
  });

  test("is removed with the log at an orderly stop", async () => {
    kept = new Kept(scratch.path("stopped.db"), "full");
    await kept.write(1, 2 * MIB);
    await until(() => kept.fileBytes > kept.writtenBytes);
    const path = kept.db.logPath;
    kept.close();
    expect(existsSync(path)).toBe(false);
    kept = new Kept(scratch.path("stopped.db"), "full");
    expect(kept.db.number("SELECT count(*) AS n FROM filler")()).toBe(1);
  });

  test("is truncated with the remains of a failed commit, and preallocated again", async () => {
    kept = new Kept(scratch.path("cut.db"), "full");
    await kept.write(1, 2 * MIB);
    await until(() => kept.fileBytes > kept.writtenBytes + PREALLOCATED_BYTES / 2);
    await moved(kept);
    kept.db.cutLog();
    expect(kept.fileBytes).toBe(kept.writtenBytes);
    await kept.write(1, 3 * MIB);
    await moved(kept);
    expect(kept.fileBytes).toBeGreaterThanOrEqual(kept.checkpointer.walBytes + PREALLOCATED_BYTES);
    expect(kept.db.one<object>("PRAGMA quick_check")()).toEqual({ quick_check: "ok" });
  });

  test("is not part of a backup", async () => {
    kept = new Kept(scratch.path("live.db"), "full");
    await kept.write(1, 2 * MIB);
    await moved(kept);
    await kept.write(10, 4_000);
    let largest = 0;
    await copyLiveDatabase(kept.db.path, scratch.path("copy.db"), () => {
      const log = statSync(scratch.path("copy.db-wal"), { throwIfNoEntry: false });
      largest = Math.max(largest, log?.size ?? 0);
      return Promise.resolve();
    });
    expect(largest).toBeLessThan(PREALLOCATED_BYTES);
    const copy = new SqliteDatabase(scratch.path("copy.db"), { readonly: true });
    expect(copy.query<{ n: number }, []>("SELECT count(*) AS n FROM filler").get()?.n).toBe(11);
    copy.close();
  });
});

describe("preallocated space after a kill or a power cut", () => {
  /** A log of 20 commits with this number of preallocated bytes after them; a start finds these rows. */
  async function startedOn(room: number, tamper: (log: string) => void = () => undefined): Promise<number> {
    const kept = new Kept(scratch.path(`${room}.db`), "full");
    await kept.write(20, 6_000);
    const left = scratch.path(`${room}-left.db`);
    copyFileSync(kept.db.path, left);
    copyFileSync(kept.db.logPath, `${left}-wal`);
    const { log } = kept.db.logPages();
    kept.close();
    appendFileSync(`${left}-wal`, Buffer.alloc(room));
    tamper(`${left}-wal`);
    expect(scanLog(`${left}-wal`)?.damage ?? null).toBeNull();
    const db = new Database(left, "full");
    try {
      const frames = db.logPages().log;
      expect(frames).toBeLessThanOrEqual(log);
      expect(scanLog(`${left}-wal`)?.frames ?? 0).toBe(frames);
      db.settleLog();
      expect(statSync(`${left}-wal`).size).toBe(0);
      expect(db.one<object>("PRAGMA quick_check")()).toEqual({ quick_check: "ok" });
      return db.number("SELECT count(*) AS n FROM filler")();
    } finally {
      db.close();
    }
  }

  test.each([1, 511, 4_096, FRAME_BYTES, FRAME_BYTES + 1, 10 * FRAME_BYTES - 1, 3 * MIB])(
    "%d bytes of it: all commits are found without damage",
    async (room) => {
      expect(await startedOn(room)).toBe(20);
    },
  );

  test("a torn last commit within it: the others are found", async () => {
    const torn = (log: string): void => {
      const frames = scanLog(log)?.frames ?? 0;
      const bytes = readFileSync(log);
      bytes.fill(0, LOG_HEADER_BYTES + frames * FRAME_BYTES - 2_000, LOG_HEADER_BYTES + frames * FRAME_BYTES);
      writeFileSync(log, bytes);
    };
    expect(await startedOn(MIB, torn)).toBe(19);
  });

  test("a torn commit in the middle of the log is damage also with preallocated space behind it", async () => {
    const kept = new Kept(scratch.path("torn.db"), "full");
    await kept.write(20, 6_000);
    const bytes = Buffer.concat([readFileSync(kept.db.logPath), Buffer.alloc(MIB)]);
    kept.close();
    bytes.fill(0, LOG_HEADER_BYTES + 10 * FRAME_BYTES, LOG_HEADER_BYTES + 12 * FRAME_BYTES);
    writeFileSync(scratch.path("torn-wal"), bytes);
    expect(scanLog(scratch.path("torn-wal"))?.damage?.atFrame).toBe(11);
  });

  test("a log of nothing else is empty", () => {
    const path = scratch.path("zeros");
    writeFileSync(path, Buffer.alloc(MIB));
    expect(scanLog(path)).toMatchObject({ frames: 0, damage: null });
    truncateSync(path, LOG_HEADER_BYTES + 1);
    expect(scanLog(path)).toMatchObject({ frames: 0, damage: null });
  });
});
