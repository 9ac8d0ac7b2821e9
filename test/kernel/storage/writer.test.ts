import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { Change } from "../../../src/kernel/storage/database.ts";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import {
  BACKGROUND_MS_MAX,
  BATCH_MS_MAX,
  UNITS_PER_BATCH_MAX,
  UNITS_QUEUED_MAX,
} from "../../../src/kernel/storage/writer.ts";
import { realDelay } from "../../../src/kernel/time/clock.ts";
import { rejection, TestStorage } from "../support.ts";

let storage: TestStorage;
let insert: Change<[number]>;

beforeEach(() => {
  storage = new TestStorage();
  storage.db.execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY)");
  insert = storage.db.change<[number]>("INSERT INTO numbers (value) VALUES (?)");
});
afterEach(() => storage.close());

function numbers(): number[] {
  return storage
    .rows<{ value: number }>("SELECT value FROM numbers ORDER BY value")
    .map(({ value }) => value);
}

/** A value in memory that a unit changes so that it can be rolled back. */
class Counter {
  value = 0;

  add(tx: Tx, amount: number): void {
    const before = this.value;
    this.value += amount;
    tx.onRollback(() => {
      this.value = before;
    });
  }
}

describe("group commit", () => {
  test("units of one turn run in order and share a commit", async () => {
    const order: number[] = [];
    const units = Array.from({ length: 100 }, (_, index) =>
      storage.writer.submit((tx) => {
        order.push(index);
        insert(tx, index);
        return index * 2;
      }),
    );
    expect(storage.writer.queued).toBe(100);
    expect(order).toEqual([]);
    expect(await Promise.all(units)).toEqual(Array.from({ length: 100 }, (_, index) => index * 2));
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(storage.writer.stats).toEqual({ commits: 1, units: 100, failures: 0, failing: null });
    expect(storage.writer.queued).toBe(0);
    expect(numbers()).toHaveLength(100);
  });

  test("a promise settles only after its unit is durable and visible to another connection", async () => {
    const { Database } = await import("../../../src/kernel/storage/database.ts");
    const other = new Database(storage.db.path, "normal");
    const count = other.number("SELECT count(*) AS n FROM numbers");
    const before = await storage.writer.submit((tx) => {
      insert(tx, 1);
      return count();
    });
    expect(before).toBe(0);
    expect(count()).toBe(1);
    other.close();
  });

  test("units of one batch share a time and see earlier writes", async () => {
    const count = storage.db.number("SELECT count(*) AS n FROM numbers");
    const seen = await Promise.all(
      [1, 2, 3].map((value) =>
        storage.writer.submit((tx) => {
          insert(tx, value);
          return [tx.now, count()];
        }),
      ),
    );
    const now = storage.clock.now();
    expect(seen).toEqual([
      [now, 1],
      [now, 2],
      [now, 3],
    ]);
  });

  test("a unit submitted by a unit or after a commit runs in its own batch", async () => {
    let inner: Promise<number> | undefined;
    let after: Promise<number> | undefined;
    await storage.writer.submit((tx) => {
      inner = storage.writer.submit(() => storage.writer.stats.commits);
      tx.afterCommit(() => {
        after = storage.writer.submit(() => storage.writer.stats.commits);
      });
    });
    expect(await inner).toBe(1);
    expect(await after).toBe(1);
    expect(storage.writer.stats.commits).toBe(2);
  });

  test("hooks run at the end of each batch, inside its transaction; observers after it", async () => {
    const events: string[] = [];
    storage.writer.beforeCommit((tx) => {
      events.push(`hook ${storage.db.inTransaction}`);
      insert(tx, 1000 + events.length);
      tx.afterCommit(() => events.push(`after the hook ${storage.db.inTransaction}`));
    });
    storage.writer.onCommitted(() => events.push("observer"));
    await Promise.all(
      [1, 2].map((value) =>
        storage.writer.submit((tx) => {
          events.push(`unit ${value}`);
          insert(tx, value);
          tx.afterCommit(() => events.push(`after unit ${value}`));
        }),
      ),
    );
    expect(events).toEqual([
      "unit 1",
      "unit 2",
      "hook true",
      "after the hook false",
      "after unit 1",
      "after unit 2",
      "observer",
    ]);
    expect(numbers()).toEqual([1, 2, 1003]);
  });
});

describe("a wait for clients that have just got their response", () => {
  const CONFIRMATION_MS = 5;

  test("ends with the last of them, or without them, and in between nothing runs", async () => {
    storage.writer.follow({
      beforeBatch: () => {},
      beforeCommit: () => {},
      afterCommit: () => {},
      get confirmation() {
        return realDelay(CONFIRMATION_MS);
      },
    });
    const submit = (values: readonly number[]) =>
      Promise.all(values.map((value) => storage.writer.submit((tx) => insert(tx, value))));
    for (let batch = 0; batch < 10; batch += 1) await submit([10 * batch, 10 * batch + 1]);
    expect(storage.writer.stats.commits).toBe(10);
    const timers = spyOn(globalThis, "setTimeout");
    const turns = spyOn(globalThis, "setImmediate");
    try {
      const first = submit([100]);
      // The one that ends the wait.
      expect(timers).toHaveBeenCalledTimes(1);
      expect(turns).not.toHaveBeenCalled();
      const second = submit([101]);
      expect(turns).toHaveBeenCalledTimes(1);
      await Promise.all([first, second]);
      expect(storage.writer.stats.commits).toBe(11);
      await submit([102]);
      expect(storage.writer.stats.commits).toBe(12);
      expect(turns).toHaveBeenCalledTimes(1);
    } finally {
      timers.mockRestore();
      turns.mockRestore();
    }
  });
});

describe("a unit that fails", () => {
  test("before a write: nothing of it stays, the others commit, nothing runs twice", async () => {
    const counter = new Counter();
    let runs = 0;
    const units = [1, 2, 3].map((value) =>
      storage.writer.submit((tx) => {
        runs += 1;
        counter.add(tx, value);
        if (value === 2) throw new ApiError("conflict", "refused");
        insert(tx, value);
        return value;
      }),
    );
    const settled = await Promise.allSettled(units);
    expect(settled[0]).toEqual({ status: "fulfilled", value: 1 });
    expect(settled[1]).toEqual({ status: "rejected", reason: new ApiError("conflict", "refused") });
    expect(settled[2]).toEqual({ status: "fulfilled", value: 3 });
    expect(numbers()).toEqual([1, 3]);
    expect(counter.value).toBe(4);
    expect(runs).toBe(3);
    expect(storage.writer.stats).toEqual({ commits: 1, units: 3, failures: 0, failing: null });
  });

  test("after a write: the batch runs again with savepoints and commits once", async () => {
    const counter = new Counter();
    const runs: number[] = [];
    const settled = await Promise.allSettled(
      [1, 2, 3].map((value) =>
        storage.writer.submit((tx) => {
          runs.push(value);
          counter.add(tx, value);
          insert(tx, value);
          if (value === 2) throw new Error("failed after writing");
          return counter.value;
        }),
      ),
    );
    expect(settled).toEqual([
      { status: "fulfilled", value: 1 },
      { status: "rejected", reason: new Error("failed after writing") },
      { status: "fulfilled", value: 4 },
    ]);
    expect(runs).toEqual([1, 2, 1, 2, 3]);
    expect(numbers()).toEqual([1, 3]);
    expect(counter.value).toBe(4);
    expect(storage.writer.stats.commits).toBe(1);
  });

  test("by a broken constraint: the same", async () => {
    const settled = await Promise.allSettled(
      [1, 1, 2].map((value) => storage.writer.submit((tx) => insert(tx, value))),
    );
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(numbers()).toEqual([1, 2]);
  });

  test("undoes its changes in memory in reverse order", async () => {
    const undone: number[] = [];
    await rejection(
      storage.writer.submit((tx) => {
        for (const step of [1, 2, 3]) tx.onRollback(() => undone.push(step));
        throw new Error("failed");
      }),
    );
    expect(undone).toEqual([3, 2, 1]);
  });

  test("does not run its effects after the commit", async () => {
    const ran: string[] = [];
    const failing = storage.writer.submit((tx) => {
      tx.afterCommit(() => ran.push("failed unit"));
      throw new Error("failed");
    });
    const fine = storage.writer.submit((tx) => {
      expect(ran).toEqual([]);
      tx.afterCommit(() => ran.push(`fine unit, in transaction: ${storage.db.inTransaction}`));
    });
    await rejection(failing);
    await fine;
    expect(ran).toEqual(["fine unit, in transaction: false"]);
  });

  test("an error after the commit is logged and affects no other", async () => {
    const ran: string[] = [];
    await storage.writer.submit((tx) => {
      tx.afterCommit(() => {
        throw new Error("broken");
      });
      tx.afterCommit(() => ran.push("second"));
    });
    expect(ran).toEqual(["second"]);
    expect(storage.log.messages("error")).toEqual(["defect after a commit"]);
  });

  test("a unit that returns a promise is rejected", async () => {
    const work = async (tx: Tx): Promise<number> => {
      insert(tx, 1);
      return 1;
    };
    const other = storage.writer.submit((tx) => insert(tx, 2));
    const error = await rejection(storage.writer.submit(work as never));
    expect(error).toEqual(new Error("a unit of work returned a promise: it must be synchronous"));
    await other;
    expect(numbers()).toEqual([2]);
  });
});

describe("tx.savepoint", () => {
  /** A unit whose middle part writes and fails; returns its outcome. */
  function unitWithFailingPart(
    counter: Counter,
    writes: { readonly before: boolean; readonly inside: boolean },
  ) {
    return storage.writer.submit((tx) => {
      counter.add(tx, 1);
      if (writes.before) insert(tx, 1);
      let caught = "";
      try {
        tx.savepoint(() => {
          counter.add(tx, 10);
          tx.afterCommit(() => counter.add(tx, 1000));
          if (writes.inside) insert(tx, 2);
          throw new Error("part failed");
        });
      } catch (error) {
        caught = String(error);
      }
      counter.add(tx, 100);
      insert(tx, 3);
      return caught;
    });
  }

  test.each([
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ])("rolls back only a failing part (wrote before: %p, inside: %p)", async (before, inside) => {
    const counter = new Counter();
    expect(await unitWithFailingPart(counter, { before, inside })).toBe("Error: part failed");
    expect(numbers()).toEqual(before ? [1, 3] : [3]);
    expect(counter.value).toBe(101);
  });

  test("keeps a successful part and returns its value", async () => {
    const counter = new Counter();
    const value = await storage.writer.submit((tx) =>
      tx.savepoint(() => {
        counter.add(tx, 5);
        insert(tx, 5);
        return "done";
      }),
    );
    expect(value).toBe("done");
    expect(numbers()).toEqual([5]);
    expect(counter.value).toBe(5);
  });

  test("nested parts: an outer failure rolls back the inner success, an inner failure keeps the outer", async () => {
    const counter = new Counter();
    const quietly = (run: () => void): void => {
      try {
        run();
      } catch {
        // Only the final state matters.
      }
    };
    await storage.writer.submit((tx) => {
      const write = (value: number): void => {
        counter.add(tx, value);
        insert(tx, value);
      };
      quietly(() =>
        tx.savepoint(() => {
          write(1);
          tx.savepoint(() => write(2));
          throw new Error("outer");
        }),
      );
      tx.savepoint(() => {
        write(4);
        quietly(() =>
          tx.savepoint(() => {
            write(8);
            throw new Error("inner");
          }),
        );
        write(16);
      });
    });
    expect(numbers()).toEqual([4, 16]);
    expect(counter.value).toBe(20);
  });

  test("an uncaught failure of a part fails only its unit", async () => {
    const counter = new Counter();
    const failing = storage.writer.submit((tx) => {
      counter.add(tx, 1);
      insert(tx, 1);
      tx.savepoint(() => {
        insert(tx, 2);
        throw new Error("through");
      });
    });
    const fine = storage.writer.submit((tx) => {
      counter.add(tx, 10);
      insert(tx, 3);
    });
    expect(await rejection(failing)).toEqual(new Error("through"));
    await fine;
    expect(numbers()).toEqual([3]);
    expect(counter.value).toBe(10);
  });
});

describe("limits", () => {
  test("a batch holds at most UNITS_PER_BATCH_MAX units", async () => {
    const submitMany = (count: number) =>
      Promise.all(Array.from({ length: count }, () => storage.writer.submit(() => {})));
    await submitMany(UNITS_PER_BATCH_MAX);
    expect(storage.writer.stats.commits).toBe(1);
    await submitMany(UNITS_PER_BATCH_MAX + 1);
    expect(storage.writer.stats.commits).toBe(3);
    expect(storage.writer.stats.units).toBe(2 * UNITS_PER_BATCH_MAX + 1);
  });

  test("above UNITS_QUEUED_MAX waiting units the next is rejected with 503", async () => {
    const waiting = Array.from({ length: UNITS_QUEUED_MAX }, (_, index) =>
      storage.writer.submit(() => index),
    );
    const error = (await rejection(storage.writer.submit(() => "one too many"))) as ApiError;
    expect(error).toBeInstanceOf(ApiError);
    expect(error.code).toBe("service_unavailable");
    expect(error.details.retryAfterSeconds).toBe(1);
    expect(await waiting.at(-1)).toBe(UNITS_QUEUED_MAX - 1);
    expect(storage.writer.stats.units).toBe(UNITS_QUEUED_MAX);
    expect(await storage.writer.submit(() => "again")).toBe("again");
  });

  test("close commits queued units and rejects later ones", async () => {
    const queued = Array.from({ length: UNITS_PER_BATCH_MAX + 5 }, (_, index) =>
      storage.writer.submit((tx) => insert(tx, index)),
    );
    storage.writer.close();
    expect(numbers()).toHaveLength(UNITS_PER_BATCH_MAX + 5);
    const late = (await rejection(storage.writer.submit(() => 1))) as ApiError;
    expect(late.code).toBe("service_unavailable");
    expect(late.message).toContain("shutting down");
    await Promise.all(queued);
    expect(storage.writer.stats.commits).toBe(2);
  });
});

describe("long units", () => {
  let nowMs = 0;

  beforeEach(() => {
    nowMs = 0;
    spyOn(storage.clock, "monotonic").mockImplementation(() => nowMs);
  });

  /** Work that takes a number of milliseconds and inserts a number. */
  function slowInsert(value: number, tookMs: number): (tx: Tx) => number {
    return (tx) => {
      nowMs += tookMs;
      insert(tx, value);
      return value;
    };
  }

  test("a batch ends with the unit that reaches the time limit; the others keep their order", async () => {
    const half = BATCH_MS_MAX / 2;
    const settled: number[] = [];
    const units = Array.from({ length: 5 }, (_, value) =>
      storage.writer.submit(slowInsert(value, half)).then((done) => settled.push(done)),
    );
    const late = units[1]
      ?.then(() => storage.writer.submit(slowInsert(5, 0)))
      .then((done) => settled.push(done));
    await Promise.all([...units, late]);
    expect(settled).toEqual([0, 1, 2, 3, 4, 5]);
    expect(storage.writer.stats).toEqual({ commits: 3, units: 6, failures: 0, failing: null });
    expect(numbers()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("units below the time limit share a commit", async () => {
    const units = Array.from({ length: 4 }, (_, value) =>
      storage.writer.submit(slowInsert(value, BATCH_MS_MAX / 4)),
    );
    await Promise.all(units);
    expect(storage.writer.stats.commits).toBe(1);
  });

  test("a unit that is longer than the limit is committed alone", async () => {
    await Promise.all([0, 1].map((value) => storage.writer.submit(slowInsert(value, 10 * BATCH_MS_MAX))));
    expect(storage.writer.stats).toMatchObject({ commits: 2, units: 2 });
  });

  test("another client's unit is committed between two long batches", async () => {
    const long = Array.from({ length: 3 }, (_, value) =>
      storage.writer.submit(slowInsert(value, BATCH_MS_MAX)),
    );
    await long[0];
    expect(numbers()).toEqual([0]);
    expect(storage.writer.queued).toBe(2);
    await Promise.all(long);
  });

  test("units that did not run are neither lost nor run twice when an earlier one fails after it has written", async () => {
    const counter = new Counter();
    const failing = storage.writer.submit((tx) => {
      insert(tx, 100);
      throw new Error("failed");
    });
    const units = Array.from({ length: 4 }, (_, value) =>
      storage.writer.submit((tx) => {
        counter.add(tx, 1);
        return slowInsert(value, BATCH_MS_MAX)(tx);
      }),
    );
    expect(await rejection(failing)).toMatchObject({ message: "failed" });
    expect(await Promise.all(units)).toEqual([0, 1, 2, 3]);
    expect(numbers()).toEqual([0, 1, 2, 3]);
    expect(counter.value).toBe(4);
  });

  test("a failed commit rejects the units that ran; those that did not are committed later", async () => {
    storage.db.fault = "rolled-back";
    const [ran, waits] = [0, 1].map((value) => storage.writer.submit(slowInsert(value, BATCH_MS_MAX)));
    expect(await rejection(ran as Promise<number>)).toMatchObject({ code: "read_only" });
    storage.db.fault = "none";
    expect(await waits).toBe(1);
    expect(numbers()).toEqual([1]);
  });

  test("closing commits every batch", async () => {
    const units = Array.from({ length: 3 }, (_, value) =>
      storage.writer.submit(slowInsert(value, BATCH_MS_MAX)),
    );
    storage.writer.close();
    expect(await Promise.all(units)).toEqual([0, 1, 2]);
    expect(storage.writer.stats.commits).toBe(3);
  });

  describe("in the background", () => {
    /** Submits units, and notes in which commit each was. */
    function submitted(
      commits: Map<number, number>,
      values: readonly number[],
      tookMs: number,
      isRequest: boolean,
    ) {
      return values.map(async (value) => {
        const work = slowInsert(value, tookMs);
        await (isRequest ? storage.writer.submit(work) : storage.writer.submitInBackground(work));
        commits.set(value, storage.writer.stats.commits);
      });
    }

    test("run after the units of requests, and for a limited time in each batch", async () => {
      const commits = new Map<number, number>();
      const units = submitted(commits, [10, 11, 12, 13], BACKGROUND_MS_MAX, false);
      units.push(...submitted(commits, [1, 2], 0, true));
      await units.at(-1);
      // Behind one background unit at most, however many were submitted before.
      expect([...commits]).toEqual([
        [1, 1],
        [2, 1],
        [10, 1],
      ]);
      units.push(...submitted(commits, [3], 0, true));
      await Promise.all(units);
      expect([...commits]).toEqual([
        ...([1, 2, 10].map((value) => [value, 1]) as [number, number][]),
        ...([3, 11].map((value) => [value, 2]) as [number, number][]),
        [12, 3],
        [13, 4],
      ]);
    });

    test("continue when requests take all of their time", async () => {
      const commits = new Map<number, number>();
      await Promise.all([
        ...submitted(commits, [10, 11, 12], BACKGROUND_MS_MAX / 2, false),
        ...submitted(commits, [1, 2, 3], BATCH_MS_MAX, true),
      ]);
      expect(Object.fromEntries(commits)).toEqual({ 1: 1, 2: 2, 3: 3, 10: 1, 11: 1, 12: 2 });
    });

    test("are rejected and run again like those of requests", async () => {
      const failing = storage.writer.submitInBackground((tx) => {
        insert(tx, 100);
        throw new Error("failed");
      });
      const commits = new Map<number, number>();
      const units = [
        ...submitted(commits, [10, 11], BACKGROUND_MS_MAX, false),
        ...submitted(commits, [1, 2], BATCH_MS_MAX, true),
      ];
      expect(await rejection(failing)).toMatchObject({ message: "failed" });
      await Promise.all(units);
      expect(numbers()).toEqual([1, 2, 10, 11]);
      expect(storage.writer.stats).toMatchObject({ units: 5, failures: 0 });
    });

    test("are committed by close", async () => {
      const commits = new Map<number, number>();
      const units = submitted(commits, [10, 11, 12], BACKGROUND_MS_MAX, false);
      storage.writer.close();
      await Promise.all(units);
      expect(numbers()).toEqual([10, 11, 12]);
    });
  });
});
