import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Tx } from "../../../src/kernel/storage/tx.ts";
import { KernelBench } from "../../areas/projects/kernel-bench.ts";
import { TestServer } from "../../support/server.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let bench: KernelBench;
beforeEach(() => {
  bench = new KernelBench();
});
afterEach(async () => {
  await bench.kernel.scheduler.stop();
  bench.close();
});

/** Records how many rows each step removed, out of a number of them. */
function removedOf(rows: number): { steps: number[]; remove: (tx: Tx, rowsMax: number) => number } {
  const steps: number[] = [];
  let left = rows;
  const remove = (_: Tx, rowsMax: number): number => {
    const removed = Math.min(left, rowsMax);
    left -= removed;
    steps.push(removed);
    return removed;
  };
  return { steps, remove };
}

/** Advances the time to a millisecond before the next housekeeping, 37 minutes past the hour. */
async function untilDue(): Promise<void> {
  await bench.clock.advance(((97 * MINUTE - (bench.clock.now() % HOUR)) % HOUR) - 1);
}

test.each([
  [0, [0]],
  [9, [9]],
  [10, [10, 0]],
  [25, [10, 10, 5]],
])("a purge of %p rows ends with the first incomplete step", async (rows, expected) => {
  const { steps, remove } = removedOf(rows);
  bench.kernel.housekeeping.addPurge({ name: "test", rowsMax: 10, remove });
  await bench.kernel.scheduler.start();
  await untilDue();
  expect(steps).toEqual([]);
  await bench.clock.advance(1);
  expect(steps).toEqual(expected);
  await bench.clock.advance(HOUR);
  expect(steps).toEqual([...expected, 0]);
});

test("purges share a unit of work, and a removal follows them", async () => {
  const order: string[] = [];
  for (const name of ["one", "two", "three"]) {
    bench.kernel.housekeeping.addPurge({
      name,
      rowsMax: 1,
      remove: () => {
        order.push(name);
        return 0;
      },
    });
  }
  bench.kernel.housekeeping.addRemoval(async () => {
    order.push("removal");
  });
  await bench.kernel.scheduler.start();
  await untilDue();
  await bench.clock.advance(1);
  expect(order).toEqual(["one", "two", "three", "removal"]);
});

test("a purge that fails after a write is rolled back and does not stop the others", async () => {
  const { db, housekeeping, scheduler } = bench.kernel;
  const note = db.change<[string]>("INSERT INTO settings (name, value) VALUES (?, 1)");
  const noted = db.all<{ name: string }>("SELECT name FROM settings WHERE name LIKE 'test %' ORDER BY name");
  const purge = (name: string, after: () => number) =>
    housekeeping.addPurge({
      name,
      rowsMax: 1,
      remove: (tx) => {
        note(tx, `test ${name}`);
        return after();
      },
    });
  purge("first", () => 0);
  purge("second", () => {
    throw new Error("broken");
  });
  purge("third", () => 0);
  await scheduler.start();
  await untilDue();
  await bench.clock.advance(1);
  expect(noted()).toEqual([{ name: "test first" }, { name: "test third" }]);
});

test("ten days without work make at most 600 commits", async () => {
  const server = await new TestServer({ manualClock: true }).start();
  try {
    const { stats } = server.server.kernel.writer;
    const before = stats.commits;
    await server.clock.advance(10 * DAY);
    expect(stats.commits - before).toBeLessThanOrEqual(600);
  } finally {
    await server.stop();
  }
});
