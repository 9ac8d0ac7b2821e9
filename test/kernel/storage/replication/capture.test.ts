import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import fc from "fast-check";
import { copyLiveDatabase } from "../../../../src/kernel/storage/live-copy.ts";
import {
  applyEntry,
  MergedEntry,
  PAGE_RECORD_BYTES,
} from "../../../../src/kernel/storage/replication/entry.ts";
import { rejection } from "../../support.ts";
import { Captured, rowsOf } from "./support.ts";

let captured: Captured;
beforeEach(() => {
  captured = new Captured();
});
afterEach(() => captured.close());

const STEP = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("insert" as const), rows: fc.integer({ min: 1, max: 40 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("update" as const), rows: fc.nat(200) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete" as const), rows: fc.nat(200) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), rows: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fault" as const), rows: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("large" as const), rows: fc.nat(300) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("restart" as const), rows: fc.nat(2) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;

const MODES = ["PASSIVE", "RESTART", "TRUNCATE"] as const;

async function take({ do: what, rows }: Step): Promise<void> {
  if (what === "insert") {
    await Promise.all(
      Array.from({ length: rows }, (_, row) =>
        captured.write("INSERT INTO filled (filler) VALUES (?)", "x".repeat(row * 37)),
      ),
    );
  } else if (what === "update")
    await captured.write("UPDATE filled SET filler = id WHERE id % 7 = ?", rows % 7);
  else if (what === "delete") await captured.write("DELETE FROM filled WHERE id < ?", rows);
  else if (what === "large")
    await captured.write("INSERT INTO other (filler) VALUES (hex(randomblob(?)))", rows * 4_096);
  else if (what === "restart") captured.checkpoint(MODES[rows] ?? "RESTART");
  else if (what === "fail") {
    // A unit that fails after it has written: the batch runs again with savepoints.
    const failing = captured.writer.submit((tx) => {
      captured.db.change("INSERT INTO filled (filler) VALUES ('lost')")(tx);
      throw new Error("no");
    });
    const other = captured.write("INSERT INTO filled (filler) VALUES ('kept')");
    await Promise.all([rejection(failing), other]);
  } else {
    captured.db.fault = "stays-open";
    await rejection(captured.write("INSERT INTO filled (filler) VALUES ('rolled back')"));
    captured.db.fault = "none";
  }
}

describe("capture", () => {
  test("the entries of any batches, over restarts of the log, make the same file byte for byte", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 20 }), async (steps) => {
        const before = captured.source.position.seq;
        const known = captured.entries.length;
        for (const step of steps) await take(step);
        const made = captured.entries.slice(known);
        expect(made.map(({ seq }) => seq)).toEqual(made.map((_, index) => before + index + 1));
        expect(captured.isSame()).toBe(true);
        expect(captured.failures).toEqual([]);
      }),
      { numRuns: 15 },
    );
  }, 60_000);

  test("50 restarts of the log lose no page", async () => {
    for (let round = 0; round < 50; round += 1) {
      await take({ do: "insert", rows: 5 });
      captured.checkpoint("RESTART");
      if (round % 3 === 0) await take({ do: "delete", rows: round });
    }
    expect(captured.isSame()).toBe(true);
  });

  test("merged entries make the same file as one after the other", async () => {
    for (let round = 0; round < 20; round += 1) await take({ do: "insert", rows: 9 });
    await take({ do: "delete", rows: 60 });
    const merged = new MergedEntry();
    for (const entry of captured.entries) merged.add(entry);
    const entry = merged.entry();
    if (entry === null) throw new Error("nothing was merged");
    expect(entry).toMatchObject({ ...captured.source.position, isSeal: false });
    const pages = captured.entries.reduce((sum, { payload }) => sum + payload.length / PAGE_RECORD_BYTES, 0);
    expect(entry.payload.length / PAGE_RECORD_BYTES).toBeLessThan(pages / 2);
    captured.entries.splice(0, captured.entries.length, entry);
    expect(captured.isSame()).toBe(true);
  });

  test("a live copy is a base: its own position, and the entries after it", async () => {
    for (let round = 0; round < 10; round += 1) await take({ do: "insert", rows: 9 });
    const base = captured.scratch.path("base.db");
    const writing = Promise.all(Array.from({ length: 5 }, () => take({ do: "insert", rows: 9 })));
    await copyLiveDatabase(captured.path, base, async () => undefined);
    await writing;
    await take({ do: "delete", rows: 20 });
    const reader = new SqliteDatabase(base, { readonly: true });
    const position = reader.query<{ seq: number }, []>("SELECT * FROM replica_position").get();
    reader.close();
    const file = openSync(base, "r+");
    // Pages older than the base do no harm: only the first entry that it lacks matters.
    for (const entry of captured.entries.filter(({ seq }) => seq > (position?.seq ?? 0)))
      applyEntry(file, entry);
    closeSync(file);
    captured.checkpoint("TRUNCATE");
    expect(rowsOf(base)).toBe(rowsOf(captured.path));
  });

  test("a batch that writes nothing makes no entry and stays empty", async () => {
    await take({ do: "insert", rows: 1 });
    const { log } = captured.db.logPages();
    await captured.writer.submit(() => 1);
    expect(captured.db.logPages().log).toBe(log);
    expect(captured.entries).toHaveLength(1);
  });

  test("another program that writes between two batches is noticed before the next one", async () => {
    await take({ do: "insert", rows: 1 });
    const other = new SqliteDatabase(captured.path);
    other.run("INSERT INTO filled (filler) VALUES ('foreign')");
    expect(await rejection(captured.write("DELETE FROM filled"))).toMatchObject({
      code: "read_only",
    });
    expect(captured.failures).toEqual([expect.stringContaining("another program writes to the database")]);
    expect(captured.entries).toHaveLength(1);
    other.close();
  });

  test("another program that writes after a restart of the log is noticed", async () => {
    await take({ do: "insert", rows: 1 });
    captured.checkpoint("RESTART");
    const other = new SqliteDatabase(captured.path);
    other.run("PRAGMA wal_autocheckpoint = 0");
    // As many frames as before, in another log.
    const { log } = captured.db.logPages();
    do other.run("UPDATE filled SET filler = hex(randomblob(9)) WHERE id = 1");
    while (captured.db.logPages().log !== log);
    await rejection(captured.write("DELETE FROM filled"));
    expect(captured.failures).toHaveLength(1);
    other.close();
  });

  test("another program's commit between the check and the server's own is noticed after it", async () => {
    await take({ do: "insert", rows: 1 });
    const other = new SqliteDatabase(captured.path);
    const assert = captured.source.beforeBatch.bind(captured.source);
    captured.source.beforeBatch = () => {
      assert();
      other.run("INSERT INTO filled (filler) VALUES ('foreign')");
    };
    await captured.write("DELETE FROM filled WHERE id = 1");
    expect(captured.failures).toHaveLength(1);
    expect(captured.entries).toHaveLength(1);
    other.close();
  });
});
