import { expect, test } from "bun:test";
import { changedFields, type Side } from "../../src/pages/dashboard/pages/server/audit-diff.ts";

/** The changes as texts: what was removed in brackets, what was added in braces. */
function shown(before: Side, after: Side, names?: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries(
    changedFields(before, after, names).map(({ name, parts }) => [
      name,
      parts
        .map(({ value, removed, added }) => (removed ? `[${value}]` : added ? `{${value}}` : value))
        .join(""),
    ]),
  );
}

test("only fields that differ are shown, those of objects by their path", () => {
  const before = { name: "Shop", interval: 300, body: { kind: "json", path: "a" }, note: null };
  const after = { name: "Shop", interval: 600, body: { kind: "json", path: null } };
  expect(shown(before, after)).toEqual({ interval: "[300]{600}", "body.path": "[a]{null}" });
});

test("texts are compared by words", () => {
  expect(shown({ title: "Payments fail now" }, { title: "Payments work now" })).toEqual({
    title: "Payments [fail]{work} now",
  });
  expect(shown({ url: "https://a.example/old" }, { url: "https://a.example/new" })).toEqual({
    url: "https://a.example/[old]{new}",
  });
});

test("lists are compared by items, and items with fields by lines", () => {
  expect(shown({ to: ["ann", "bob"] }, { to: ["ann", "eve"] })).toEqual({ to: "ann\n[bob\n]{eve\n}" });
  expect(shown({ to: [] }, { to: ["ann"] })).toEqual({ to: "{ann\n}" });
  expect(shown({ rules: [{ name: "a", n: 1 }] }, { rules: [{ name: "a", n: 2 }, { name: "b" }] })).toEqual({
    rules: '{\n  "name": "a",\n[  "n": 1\n]{  "n": 2\n}}\n{{\n  "name": "b"\n}\n}',
  });
});

test("what was created or deleted is shown as a whole, without absent fields", () => {
  expect(shown(null, { name: "Shop", tags: [], title: "", off: null })).toEqual({
    name: "{Shop}",
    tags: "{[]}",
    title: '{""}',
  });
  expect(shown({ name: "Shop" }, null)).toEqual({ name: "[Shop]" });
});

test("monitors are shown by their names", () => {
  const names = new Map([["id-1", "Shop"]]);
  expect(shown({ monitor_ids: ["id-2"] }, { monitor_ids: ["id-2", "id-1"] }, names)).toEqual({
    monitor_ids: "id-2\n{Shop\n}",
  });
});

test("values that differ in too many places are shown one after the other", () => {
  const items = (first: number) => ({ to: Array.from({ length: 300 }, (_, at) => `${2 * at + first}`) });
  const [change] = changedFields(items(0), items(1));
  expect(change?.parts.map(({ removed, added }) => [removed, added])).toEqual([
    [true, false],
    [false, true],
  ]);
});
