import { expect, test } from "bun:test";
import { mergedRows } from "../../src/pages/dashboard/core/merge.ts";

const rows = (...ids: string[]) => ids.map((id) => ({ id, text: id }));
const keyOf = ({ id }: { id: string }): string => id;

test("new rows are held back, and known rows have their new content", () => {
  const fresh = [{ id: "new", text: "new" }, { id: "a", text: "changed" }, ...rows("b")];
  const { rows: merged, held } = mergedRows(rows("a", "b"), fresh, false, keyOf);
  expect(merged).toEqual([{ id: "a", text: "changed" }, ...rows("b")]);
  expect(held).toBe(1);
});

test("a deleted row is removed", () => {
  expect(mergedRows(rows("a", "b", "c"), rows("a", "c"), false, keyOf)).toEqual({
    rows: rows("a", "c"),
    held: 0,
  });
});

test("a row that a new one pushed to the next page stays", () => {
  const merged = mergedRows(rows("a", "b", "c"), rows("new", "a", "b"), true, keyOf);
  expect(merged).toEqual({ rows: rows("a", "b", "c"), held: 1 });
});

test("a deleted row is removed although there is a next page", () => {
  const merged = mergedRows(rows("a", "b", "c"), rows("new", "a", "c"), true, keyOf);
  expect(merged).toEqual({ rows: rows("a", "c"), held: 1 });
});
