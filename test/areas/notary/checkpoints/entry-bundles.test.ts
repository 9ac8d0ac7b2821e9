import { expect, test } from "bun:test";
import { BUNDLES_MAX, EntryBundles } from "../../../../src/areas/notary/checkpoints/entry-bundles.ts";

/** Reads entries that are their own position, and notes the positions that were computed. */
function reader() {
  const bundles = new EntryBundles();
  const computed: string[] = [];
  const read = async (name: string, width: number) => [
    ...(await bundles.read(name, width, (at) => {
      computed.push(`${name}/${at}`);
      return Buffer.of(at);
    })),
  ];
  return { read, taken: () => computed.splice(0) };
}

test("an entry is computed once, for narrower, wider and concurrent reads of its bundle", async () => {
  const { read, taken } = reader();
  expect(await read("a/0", 2)).toEqual([0, 1]);
  expect(taken()).toEqual(["a/0/0", "a/0/1"]);
  expect(await Promise.all([read("a/0", 1), read("a/0", 3), read("a/0", 3)])).toEqual([
    [0],
    [0, 1, 2],
    [0, 1, 2],
  ]);
  expect(taken()).toEqual(["a/0/2"]);
});

test("bundles of chains are apart, and the one that was not read for longest leaves first", async () => {
  const { read, taken } = reader();
  for (let bundle = 0; bundle < BUNDLES_MAX; bundle += 1) await read(`a/${bundle}`, 1);
  await read("a/0", 1);
  await read("b/0", 1);
  taken();
  await read("a/0", 1);
  await read("b/0", 1);
  expect(taken()).toEqual([]);
  await read("a/1", 1);
  expect(taken()).toEqual(["a/1/0"]);
});
