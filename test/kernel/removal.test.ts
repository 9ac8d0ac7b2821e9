import { afterEach, beforeEach, expect, test } from "bun:test";
import { registerPurge, removeInSlices } from "../../src/kernel/removal.ts";
import { KernelBench } from "../areas/projects/kernel-bench.ts";

let bench: KernelBench;
beforeEach(() => {
  bench = new KernelBench();
});
afterEach(() => bench.close());

/** What each slice removed, out of so many rows. */
function removedOf(rows: number, rowsMax: number): { slices: number[]; slice: () => number } {
  const slices: number[] = [];
  let left = rows;
  const slice = (): number => {
    const removed = Math.min(left, rowsMax);
    left -= removed;
    slices.push(removed);
    return removed;
  };
  return { slices, slice };
}

test.each([
  [0, [0]],
  [9, [9]],
  [10, [10, 0]],
  [25, [10, 10, 5]],
])("a purge of %p rows ends with the first slice that is not full", async (rows, expected) => {
  const { slices, slice } = removedOf(rows, 10);
  const moments: number[] = [];
  registerPurge(bench.kernel, {
    name: "test.purge",
    schedule: "17 * * * *",
    rowsMax: 10,
    remove: (tx, rowsMax) => {
      expect(rowsMax).toBe(10);
      moments.push(tx.now);
      return slice();
    },
  });
  const { scheduler } = bench.kernel;
  await scheduler.start();
  const minute = 60_000;
  const untilDue = (77 * minute - (bench.clock.now() % (60 * minute))) % (60 * minute);
  await bench.clock.advance(untilDue - 1);
  expect(slices).toEqual([]);
  await bench.clock.advance(1);
  expect(slices).toEqual(expected);
  expect(new Set(moments)).toEqual(new Set([bench.clock.now()]));
  // An hour later it looks again.
  await bench.clock.advance(60 * minute);
  expect(slices).toEqual([...expected, 0]);
  await scheduler.stop();
});

test("a large removal goes on until a slice says that there is no more, or the process stops", async () => {
  const whole = removedOf(25, 10);
  const slice = ({ slice }: typeof whole) => Promise.resolve(slice() === 10);
  expect(
    await removeInSlices(
      () => slice(whole),
      () => false,
    ),
  ).toBe(true);
  expect(whole.slices).toEqual([10, 10, 5]);
  const stopped = removedOf(25, 10);
  expect(
    await removeInSlices(
      () => slice(stopped),
      () => stopped.slices.length === 2,
    ),
  ).toBe(false);
  expect(stopped.slices).toEqual([10, 10]);
  expect(
    await removeInSlices(
      () => slice(stopped),
      () => true,
    ),
  ).toBe(false);
  expect(stopped.slices).toEqual([10, 10]);
});
