import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Change } from "../../../src/kernel/storage/database.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { IN_MEMORY_MS_MAX } from "../../../src/kernel/storage/writer.ts";
import { realDelay, realPause } from "../../../src/kernel/time/clock.ts";
import { rejection, TestStorage } from "../support.ts";

let storage: TestStorage;
let setSum: Change<[number]>;
/** Sums that units keep in memory, and a hook writes. */
let sum: number;

beforeEach(() => {
  storage = new TestStorage();
  sum = 0;
  storage.db.execute("CREATE TABLE sums (value INTEGER)");
  storage.db.execute("INSERT INTO sums VALUES (0)");
  setSum = storage.db.change<[number]>("UPDATE sums SET value = ?");
  storage.writer.beforeCommit((tx) => setSum(tx, sum));
});
afterEach(() => storage.close());

function add(amount: number): (tx: Tx) => number {
  return (tx) => {
    sum += amount;
    tx.onRollback(() => {
      sum -= amount;
    });
    return sum;
  };
}

function written(): number {
  return storage.rows<{ value: number }>("SELECT value FROM sums")[0]?.value ?? -1;
}

describe("work in memory", () => {
  test("runs immediately and is written with the next batch", async () => {
    const { writer } = storage;
    let after = 0;
    const value = writer.runInMemory((tx) => {
      tx.afterCommit(() => {
        after += 1;
      });
      return add(3)(tx);
    });
    expect([value, sum, after, written(), writer.stats.commits]).toEqual([3, 3, 1, 0, 0]);
    await writer.submit(() => undefined);
    expect([written(), writer.stats.commits]).toEqual([3, 1]);
  });

  test("gets one batch within its maximum wait", async () => {
    const { writer } = storage;
    for (let count = 0; count < 100; count += 1) writer.runInMemory(add(1));
    await realDelay(IN_MEMORY_MS_MAX / 2);
    expect(writer.stats.commits).toBe(0);
    while (written() === 0) await realDelay(5);
    expect([written(), writer.stats.commits]).toEqual([100, 1]);
  });

  test("is rejected after its maximum wait until a batch has written it", async () => {
    const { writer } = storage;
    writer.runInMemory(add(1));
    expect(writer.takesInMemory).toBe(true);
    // Nothing runs meanwhile, including timers.
    realPause(IN_MEMORY_MS_MAX);
    expect(writer.takesInMemory).toBe(false);
    await writer.submit(() => undefined);
    expect(written()).toBe(1);
    expect(writer.takesInMemory).toBe(true);
  });

  test("that follows a batch waits its own time", async () => {
    const { writer } = storage;
    writer.runInMemory(add(1));
    await realDelay(IN_MEMORY_MS_MAX / 2);
    await writer.submit(() => undefined);
    writer.runInMemory(add(1));
    // The timer of the first comes now.
    await realDelay(IN_MEMORY_MS_MAX / 2);
    expect([written(), writer.stats.commits]).toEqual([1, 1]);
    while (written() === 1) await realDelay(5);
    expect([written(), writer.stats.commits]).toEqual([2, 2]);
  });

  test("that changes nothing causes no batch", async () => {
    expect(storage.writer.runInMemory(() => "read")).toBe("read");
    await realDelay(IN_MEMORY_MS_MAX * 1.2);
    expect(storage.writer.stats.commits).toBe(0);
  });

  test("that throws is rolled back", async () => {
    const { writer } = storage;
    let after = 0;
    const work = (tx: Tx) => {
      add(5)(tx);
      tx.afterCommit(() => {
        after += 1;
      });
      throw new Error("refused");
    };
    expect(() => writer.runInMemory(work)).toThrow("refused");
    expect([sum, after]).toEqual([0, 0]);
  });

  test("cannot write", () => {
    const write = (tx: Tx) => {
      add(5)(tx);
      setSum(tx, 7);
    };
    expect(() => storage.writer.runInMemory(write)).toThrow(
      "work that must not change the database has written",
    );
    expect([sum, written()]).toEqual([0, 0]);
  });

  test("is written by close", () => {
    storage.writer.runInMemory(add(4));
    storage.writer.close();
    expect(written()).toBe(4);
    expect(storage.writer.takesInMemory).toBe(false);
  });

  test.each(["stays-open", "rolled-back"] as const)(
    "survives a failed batch (transaction %s), and no more is accepted before one succeeds",
    async (fault) => {
      const { writer } = storage;
      writer.runInMemory(add(1));
      storage.db.fault = fault;
      await rejection(writer.submit(add(10)));
      expect([sum, written(), writer.takesInMemory]).toEqual([1, 0, false]);
      storage.db.fault = "none";
      expect(await writer.submit(add(100))).toBe(101);
      expect([written(), writer.takesInMemory]).toEqual([101, true]);
    },
  );

  test("is retried after a pause when its own batch fails", async () => {
    const { writer } = storage;
    writer.runInMemory(add(1));
    storage.db.fault = "stays-open";
    while (writer.stats.failures === 0) await realDelay(5);
    storage.db.fault = "none";
    while (written() === 0) await realDelay(20);
    expect([written(), writer.stats.failing]).toEqual([1, null]);
  }, 60_000);
});
