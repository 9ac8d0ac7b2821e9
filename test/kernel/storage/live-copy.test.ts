import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, copyFileSync, openSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import { copyLiveDatabase, SLICE_BYTES } from "../../../src/kernel/storage/live-copy.ts";
import { rejection, Scratch } from "../support.ts";

const ROWS = 1_400;
/** Slices after which something happens: those of the file, not those of a growing log. */
const BUSY_SLICES = 6;
/** A row fills most of a page, so that a change of all rows changes every page. */
const FILLER = "x".repeat(3_000);

interface Checkpoint {
  busy: number;
  log: number;
  checkpointed: number;
}

let scratch: Scratch;
let live: SqliteDatabase;
let generation = 0;

beforeEach(() => {
  scratch = new Scratch();
  live = new SqliteDatabase(scratch.path("live.db"), { create: true });
  for (const pragma of [
    "journal_mode = WAL",
    "wal_autocheckpoint = 0",
    "synchronous = OFF",
    "busy_timeout = 0",
  ])
    live.run(`PRAGMA ${pragma}`);
  live.run("CREATE TABLE filled (id INTEGER PRIMARY KEY, generation INTEGER, filler TEXT)");
  const insert = live.prepare("INSERT INTO filled (generation, filler) VALUES (0, ?)");
  live.transaction(() => {
    for (let row = 0; row < ROWS; row += 1) insert.run(FILLER);
  })();
  insert.finalize();
  generation = 0;
});
afterEach(() => {
  live.close();
  scratch.remove();
});

/** Changes every page in one transaction: a copy of two points in time shows two generations. */
function change(): void {
  generation += 1;
  live.run("UPDATE filled SET generation = ?", [generation]);
}

function checkpoint(mode: "PASSIVE" | "RESTART" | "TRUNCATE"): Checkpoint {
  const row = live.query<Checkpoint, []>(`PRAGMA wal_checkpoint(${mode})`).get();
  if (row === null) throw new Error("no answer");
  return row;
}

/** Copies, with `between` called after each slice. Returns the single generation in the copy. */
async function copyWith(between: (slice: number) => void): Promise<number> {
  const target = scratch.path("copy.db");
  let slice = 0;
  await copyLiveDatabase(live.filename, target, async () => {
    slice += 1;
    if (slice <= BUSY_SLICES) between(slice);
  });
  expect(readdirSync(scratch.folder).filter((name) => name.startsWith("copy.db"))).toEqual(["copy.db"]);
  const copy = new SqliteDatabase(target, { readonly: true });
  try {
    expect(copy.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    expect(copy.query("SELECT count(*) AS rows FROM filled").get()).toEqual({ rows: ROWS });
    const found = copy
      .query<{ generation: number }, []>("SELECT DISTINCT generation FROM filled")
      .all()
      .map((row) => row.generation);
    expect(found).toHaveLength(1);
    return found[0] ?? Number.NaN;
  } finally {
    copy.close();
  }
}

describe("a copy of a live database is consistent and contains everything committed before its start", () => {
  test("of a file whose log was moved, without writes", async () => {
    change();
    checkpoint("TRUNCATE");
    expect(await copyWith(() => {})).toBe(1);
  });

  test("of a file with most of its content in the log", async () => {
    expect(statSync(live.filename).size).toBeLessThan(SLICE_BYTES);
    expect(await copyWith(() => {})).toBe(0);
  });

  test("of a file in rollback mode", async () => {
    live.run("PRAGMA journal_mode = DELETE");
    expect(await copyWith(() => {})).toBe(0);
  });

  test("while pages are moved at every slice, and the log cannot restart", async () => {
    checkpoint("PASSIVE");
    change();
    const moved: number[] = [];
    const refused: number[] = [];
    const found = await copyWith(() => {
      change();
      moved.push(checkpoint("PASSIVE").checkpointed);
      refused.push(checkpoint("RESTART").busy);
    });
    expect(found).toBeGreaterThanOrEqual(1);
    expect(new Set(refused)).toEqual(new Set([1]));
    // Pages to be moved do not accumulate: each slice replaces the previous hold by a newer one.
    expect(moved.length).toBeGreaterThan(4);
    expect(moved.every((pages, index) => index === 0 || pages > (moved[index - 1] ?? 0))).toBe(true);
    expect(checkpoint("RESTART").busy).toBe(0);
  });

  const beginnings: readonly (readonly [name: string, prepare: () => void])[] = [
    ["the log is empty", () => checkpoint("TRUNCATE")],
    ["the log is full and completely moved, so that the next write restarts it", () => checkpoint("PASSIVE")],
    ["the log has just been restarted", () => checkpoint("RESTART")],
  ];
  for (const [name, prepare] of beginnings) {
    for (const from of [1, 2, 3]) {
      test(`although ${name}, and writes and checkpoints start at slice ${from}`, async () => {
        prepare();
        const found = await copyWith((slice) => {
          if (slice < from) return;
          change();
          checkpoint("PASSIVE");
          checkpoint("RESTART");
          change();
        });
        expect(found).toBeGreaterThanOrEqual(0);
      });
    }
  }

  test("when the file grows meanwhile", async () => {
    checkpoint("TRUNCATE");
    const extra: number[] = [];
    await copyWith(() => {
      change();
      live.run("CREATE TABLE IF NOT EXISTS extra (filler TEXT)");
      live.run("INSERT INTO extra VALUES (?)", [FILLER.repeat(100)]);
      extra.push(checkpoint("PASSIVE").log);
    });
    expect(extra.length).toBeGreaterThan(4);
  });
});

test("a log that restarted nevertheless is detected, and no copy is made", async () => {
  change();
  const copying = copyLiveDatabase(live.filename, scratch.path("copy.db"), async () => {
    const file = openSync(`${live.filename}-wal`, "r+");
    // The salt of the header: different after every restart of the log.
    writeSync(file, crypto.getRandomValues(new Uint8Array(8)), 0, 8, 16);
    closeSync(file);
  });
  expect(String(await rejection(copying))).toContain(
    "the database was replaced, or its write-ahead log restarted, during the copy",
  );
});

test("a cancelled copy releases the log", async () => {
  change();
  const copying = copyLiveDatabase(live.filename, scratch.path("copy.db"), async () => {
    throw new Error("enough");
  });
  expect(String(await rejection(copying))).toContain("enough");
  expect(checkpoint("RESTART").busy).toBe(0);
});

test("the copy of a killed server's database leaves its log as it is, and that of a stopped one leaves nothing", async () => {
  change();
  const killed = scratch.path("killed.db");
  for (const ending of ["", "-wal"]) copyFileSync(live.filename + ending, killed + ending);
  const log = readFileSync(`${killed}-wal`);
  await copyLiveDatabase(killed, scratch.path("copy.db"), async () => undefined);
  expect(readFileSync(`${killed}-wal`).equals(log)).toBe(true);

  checkpoint("TRUNCATE");
  const stopped = scratch.path("stopped.db");
  copyFileSync(live.filename, stopped);
  await copyLiveDatabase(stopped, scratch.path("copy.db"), async () => undefined);
  expect(readdirSync(scratch.folder).filter((name) => name.startsWith("stopped"))).toEqual(["stopped.db"]);
});
