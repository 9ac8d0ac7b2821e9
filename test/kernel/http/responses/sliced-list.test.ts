import { expect, test } from "bun:test";
import { SLICE_MS, TimeSlices } from "../../../../src/kernel/background/time-slices.ts";
import { listReply } from "../../../../src/kernel/http/responses/sliced-list.ts";
import { monotonicMs } from "../../../../src/kernel/time/clock.ts";

const CALL = { holdForResponse: () => {} };

async function textOf(reply: Promise<{ readonly response: unknown }>): Promise<string> {
  return new TextDecoder().decode((await reply).response as Uint8Array);
}

test.each<[unknown[], object, object]>([
  [[], {}, { list: [] }],
  [["ä"], {}, { list: ["ä"] }],
  [[1, null, { a: "€" }], { more: [1] }, { list: [1, null, { a: "€" }], more: [1] }],
])("the list %j with %j", async (items, more, expected) => {
  const hash = new Bun.CryptoHasher("sha256");
  const text = await textOf(listReply(CALL, "list", items, { more, hash }));
  expect(text).toBe(JSON.stringify(expected));
  expect(hash.digest("hex")).toBe(Bun.CryptoHasher.hash("sha256", text, "hex"));
});

test("a list of many chunks is complete", async () => {
  const items = Array.from({ length: 5_000 }, (_, at) => ({ at, text: "ü".repeat(at % 100) }));
  expect(JSON.parse(await textOf(listReply(CALL, "list", items)))).toEqual({ list: items });
});

// One by the running list, one before it checks for its slice, and one between two reads of the counter.
const FEW = 3;

test("other requests run between the items of many lists", async () => {
  const timeSlices = new TimeSlices();
  let inThisTurn = 0;
  let mostInATurn = 0;
  function* items() {
    for (let at = 0; at < 5; at += 1) {
      inThisTurn += 1;
      mostInATurn = Math.max(mostInATurn, inThisTurn);
      for (const end = monotonicMs() + SLICE_MS + 1; monotonicMs() < end; );
      yield at;
    }
  }
  let isMaking = true;
  const all = Promise.all([1, 2, 3].map(() => listReply(CALL, "list", items(), { timeSlices }))).finally(
    () => {
      isMaking = false;
    },
  );
  while (isMaking) {
    inThisTurn = 0;
    await Bun.sleep(0);
  }
  await all;
  expect(mostInATurn).toBeLessThanOrEqual(FEW);
});
