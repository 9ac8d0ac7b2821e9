import { expect, test } from "bun:test";
import fc from "fast-check";
import { sortedBy } from "../../../src/kernel/data/sorted.ts";

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
