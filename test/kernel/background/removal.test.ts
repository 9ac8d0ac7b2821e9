import { expect, test } from "bun:test";
import { removeInSlices } from "../../../src/kernel/background/removal.ts";

/** What each slice removed, out of a number of rows. */
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

test("a large removal continues until a slice finds no more, or the process stops", async () => {
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
