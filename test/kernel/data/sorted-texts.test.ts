import { expect, test } from "bun:test";
import fc from "fast-check";
import { BLOCK_MAX, RECENT_MAX, SortedTexts } from "../../../src/kernel/data/sorted-texts.ts";

/** All texts, by {@link SortedTexts.after}. */
function textsOf(sorted: SortedTexts): string[] {
  const texts: string[] = [];
  for (let next = sorted.atLeast(""); next !== undefined; next = sorted.after(next)) texts.push(next);
  return texts;
}

test("texts are found in order, whatever was added and removed", () => {
  const texts = fc.uniqueArray(
    fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom("a", "a\0", "\u{10000}")),
    {
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(texts, texts, fc.string({ maxLength: 3 }), fc.nat(30), (added, removed, asked, placed) => {
      const sorted = new SortedTexts();
      for (const [index, text] of added.entries()) {
        // A read gives the texts so far their places.
        if (index === placed) sorted.atLeast("");
        sorted.add(text);
      }
      for (const text of removed) sorted.remove(text);
      const expected = added.filter((text) => !removed.includes(text)).sort();
      expect(textsOf(sorted)).toEqual(expected);
      expect(sorted.atLeast(asked)).toBe(expected.find((text) => text >= asked));
      expect(sorted.after(asked)).toBe(expected.find((text) => text > asked));
    }),
  );
});

test("many texts are split into blocks, and blocks without texts are removed", () => {
  const sorted = new SortedTexts();
  const texts = Array.from({ length: 5 * BLOCK_MAX }, (_, index) =>
    String((index * 7_919) % (5 * BLOCK_MAX)),
  );
  for (const text of texts) sorted.add(text);
  expect(textsOf(sorted)).toEqual([...texts].sort());
  const kept = texts.filter((text) => text > "3");
  for (const text of texts) if (text <= "3") sorted.remove(text);
  expect(textsOf(sorted)).toEqual(kept.sort());
  for (const text of kept) sorted.remove(text);
  expect(sorted.atLeast("")).toBeUndefined();
  sorted.add("a");
  expect(textsOf(sorted)).toEqual(["a"]);
});

test.each([RECENT_MAX - 1, RECENT_MAX, RECENT_MAX + 1])("of %d added texts each can be removed", (count) => {
  const sorted = new SortedTexts();
  const texts = Array.from({ length: count }, (_, index) => String(index));
  for (const text of texts) sorted.add(text);
  for (const text of texts.slice(1)) sorted.remove(text);
  expect(textsOf(sorted)).toEqual(["0"]);
});
