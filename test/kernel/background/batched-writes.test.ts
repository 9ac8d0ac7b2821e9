import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { BatchedWrites, type PendingWrite } from "../../../src/kernel/background/batched-writes.ts";
import { storageFailure, TestStorage } from "../support.ts";

const WARNING = "rows could not be written yet";
const MARKS_MAX = 20;
const ROWS_PER_UNIT = 4;

interface Item extends PendingWrite {
  value: number;
}

let storage: TestStorage;
let rounds: BatchedWrites<Item> | null;
/** Written rows and values, in order. */
let written: [number, number][];
/** Number of finished rounds. */
let ends: number;
/** Rows that can be written until the disk is full. */
let room: number;
beforeEach(() => {
  storage = new TestStorage();
  rounds = null;
  written = [];
  ends = 0;
  room = Number.POSITIVE_INFINITY;
});
afterEach(async () => {
  await rounds?.finish();
  storage.close();
});

function roundsOf(waitMs: number, begun: () => void = () => {}): BatchedWrites<Item> {
  rounds = new BatchedWrites<Item>({
    writer: storage.writer,
    log: storage.log,
    warning: WARNING,
    waitMs,
    marksMax: MARKS_MAX,
    rowsPerUnit: ROWS_PER_UNIT,
    write: (tx, { ref, value }) => {
      if (written.length >= room) throw storageFailure();
      written.push([ref, value]);
      tx.onRollback(() => written.pop());
    },
    begun: () => {
      begun();
      return () => {
        ends += 1;
      };
    },
  });
  return rounds;
}

function item(ref: number, value = 0): Item {
  return { ref, value, dueInRound: 0 };
}

/** Lets pending commits continue; some may share the batch of a row that cannot be written. */
async function commits(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await storage.writer.submit(() => {}).catch(() => {});
}

const HOUR_MS = 3_600_000;

describe("a round", () => {
  test("writes each marked row once, in order, with its current value", async () => {
    const it = roundsOf(HOUR_MS);
    const items = [item(9), item(3), item(7), item(1), item(5)];
    for (const [index, item] of [...items, ...items].entries()) {
      it.mark(item);
      item.value = index;
    }
    expect(it.held(3)).toBe(items[1] as Item);
    expect(it.held(4)).toBeUndefined();
    await it.finish();
    expect(written).toEqual([
      [1, 8],
      [3, 6],
      [5, 9],
      [7, 7],
      [9, 5],
    ]);
    expect(ends).toBe(1);
    expect(items.map(({ dueInRound }) => dueInRound)).toEqual([0, 0, 0, 0, 0]);
    expect(it.held(3)).toBeUndefined();
  });

  test(`starts immediately after ${MARKS_MAX} marks`, async () => {
    const it = roundsOf(HOUR_MS);
    const marked = item(1);
    for (let mark = 1; mark < MARKS_MAX; mark += 1) it.mark(marked);
    await commits(5);
    expect(written).toEqual([]);
    it.mark(marked);
    await commits(5);
    expect(written).toEqual([[1, 0]]);
  });

  test("starts after a wait with fewer marks, repeatedly", async () => {
    const it = roundsOf(5);
    for (const ref of [1, 2]) {
      it.mark(item(ref));
      expect(it.held(ref)).toBeDefined();
      while (it.held(ref) !== undefined) await Bun.sleep(1);
    }
    expect(written.map(([ref]) => ref)).toEqual([1, 2]);
  });

  test("does not start for remains of an earlier process, but includes them", async () => {
    const it = roundsOf(HOUR_MS);
    for (let ref = 1; ref <= MARKS_MAX + 1; ref += 1) it.hold(item(ref));
    await commits(5);
    expect(written).toEqual([]);
    await it.finish();
    expect(written).toHaveLength(MARKS_MAX + 1);
  });

  test("starts between two batches: a rolled back mark is not written", async () => {
    let seen = -1;
    const marked = item(1);
    const it = roundsOf(HOUR_MS, () => {
      seen = marked.value;
    });
    const refused = storage.writer.submit((tx) => {
      marked.value = 5;
      tx.onRollback(() => {
        marked.value = 0;
      });
      for (let mark = 0; mark < MARKS_MAX; mark += 1) it.mark(marked);
      throw new Error("taken back");
    });
    await expect(refused).rejects.toThrow("taken back");
    await commits(5);
    expect(seen).toBe(0);
    expect(written).toEqual([[1, 0]]);
  });
});

describe("an item that is marked while its round runs", () => {
  test("is written with its current value, and again in the next round", async () => {
    const marked = item(1);
    const it = roundsOf(HOUR_MS);
    it.mark(marked);
    const finished = it.finish();
    await Promise.resolve();
    marked.value = 7;
    it.mark(marked);
    await finished;
    expect(written).toEqual([[1, 7]]);
    expect(it.held(1)).toBe(marked);
    await it.finish();
    expect(written).toEqual([
      [1, 7],
      [1, 7],
    ]);
    expect(marked.dueInRound).toBe(0);
  });
});

describe("a round that fails", () => {
  test("leaves its items to the next one, which waits its time", async () => {
    const it = roundsOf(HOUR_MS);
    const items = Array.from({ length: 2 * MARKS_MAX }, (_, index) => item(index + 1));
    room = 0;
    for (const item of items) it.mark(item);
    await commits(20);
    expect(storage.log.messages("warn")).toEqual([WARNING]);
    expect([written, ends]).toEqual([[], 0]);
    for (const item of items) expect(it.held(item.ref)).toBe(item);
    room = Number.POSITIVE_INFINITY;
    await it.finish();
    expect(written.map(([ref]) => ref)).toEqual(items.map(({ ref }) => ref));
    expect(ends).toBe(1);
  });

  test("does not repeat completed writes", async () => {
    const it = roundsOf(HOUR_MS);
    for (let ref = 1; ref <= 2 * ROWS_PER_UNIT; ref += 1) it.mark(item(ref));
    room = ROWS_PER_UNIT + 1;
    await it.finish();
    expect(written).toHaveLength(ROWS_PER_UNIT);
    expect(storage.log.messages("warn")).toEqual([WARNING]);
    room = Number.POSITIVE_INFINITY;
    await it.finish();
    expect(written.map(([ref]) => ref)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

test("no round starts after the end", async () => {
  const it = roundsOf(1);
  await it.finish();
  for (let mark = 0; mark < MARKS_MAX; mark += 1) it.mark(item(1));
  await Bun.sleep(20);
  await commits(5);
  expect(written).toEqual([]);
});
