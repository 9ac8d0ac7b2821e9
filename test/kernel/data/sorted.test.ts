import { expect, test } from "bun:test";
import fc from "fast-check";
import { firstNotBefore, sortedBy } from "../../../src/kernel/data/sorted.ts";

test("numbers of any size, and items with the same number in their order", () => {
  const numbers = fc.oneof(fc.nat(5), fc.nat(), fc.maxSafeNat(), fc.constant(Number.MAX_SAFE_INTEGER));
  fc.assert(
    fc.property(fc.array(numbers), (all) => {
      const items = all.map((number, index) => ({ number, index }));
      const expected = [...items].sort((a, b) => a.number - b.number || a.index - b.index);
      expect(sortedBy(items, ({ number }) => number)).toEqual(expected);
    }),
  );
});

test("the first number that is not before is found, at both ends too, with few calls", () => {
  for (const [first, found] of [
    [-5, 10],
    [10, 10],
    [700, 700],
    [1_010, 1_010],
    [5_000, 1_010],
  ] as const) {
    let calls = 0;
    const isBefore = (at: number): boolean => {
      calls += 1;
      return at < first;
    };
    expect(firstNotBefore(10, 1_010, isBefore)).toBe(found);
    expect(calls).toBeLessThanOrEqual(10);
  }
  expect(firstNotBefore(3, 3, () => true)).toBe(3);
});
