import { expect, test } from "bun:test";
import { SLICE_MS, TimeSlices } from "../../../../src/kernel/background/time-slices.ts";
import { textStream } from "../../../../src/kernel/http/responses/text-stream.ts";
import { monotonicMs } from "../../../../src/kernel/time/clock.ts";

const PIECES = 20;
// One by the running stream, one before it checks for its slice, and one between two reads of the counter.
const FEW = 3;

test("other requests run between the pieces of a text, however fast its reader is", async () => {
  const request = new Request("http://127.0.0.1/");
  let released = 0;
  const call = {
    request,
    confirmation: null,
    awaitReader: () => () => {},
    holdForResponse: () => {},
    releaseResponse: () => {
      released += 1;
    },
  };
  const timeSlices = new TimeSlices();
  let made = 0;
  let inThisTurn = 0;
  let mostInATurn = 0;
  let ended = 0;
  const source = {
    next: () => {
      if (made === PIECES) return null;
      made += 1;
      inThisTurn += 1;
      mostInATurn = Math.max(mostInATurn, inThisTurn);
      for (const end = monotonicMs() + SLICE_MS + 1; monotonicMs() < end; );
      return "piece ";
    },
    end: () => {
      ended += 1;
    },
  };
  let isReading = true;
  const text = new Response(textStream(call, source, timeSlices)).text().finally(() => {
    isReading = false;
  });
  while (isReading) {
    inThisTurn = 0;
    await Bun.sleep(0);
  }
  expect(await text).toBe("piece ".repeat(PIECES));
  expect([ended, released]).toEqual([1, 1]);
  expect(mostInATurn).toBeLessThanOrEqual(FEW);
});
