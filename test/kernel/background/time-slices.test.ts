import { expect, test } from "bun:test";
import { exportPage } from "../../../src/areas/catch/events/export.ts";
import type { EventRow } from "../../../src/areas/catch/store.ts";
import { SLICE_MS, TimeSlices } from "../../../src/kernel/background/time-slices.ts";
import { monotonicMs } from "../../../src/kernel/time/clock.ts";

let worked = 0;

/** An event that takes longer to read than a slice. */
function work(): void {
  worked += 1;
  for (const end = monotonicMs() + SLICE_MS + 1; monotonicMs() < end; );
}

/** Maximum number of events that were read in one turn of the event loop during some requests. */
async function mostInATurn(request: () => Promise<unknown>, count: number): Promise<number> {
  let most = 0;
  let running = true;
  worked = 0;
  const all = Promise.all(Array.from({ length: count }, request)).then(() => {
    running = false;
  });
  while (running) {
    most = Math.max(most, worked);
    worked = 0;
    await Bun.sleep(0);
  }
  await all;
  return most;
}

// One by the running reader, one by a request meanwhile, and one between two reads of the counter.
const FEW = 3;

test("requests that scan large events take time slices, also for their first ones", async () => {
  const timeSlices = new TimeSlices();
  const request = async () => {
    for (let event = 0; event < 3; event += 1) {
      if (timeSlices.isOver) await timeSlices.next();
      work();
    }
  };
  expect(await mostInATurn(request, 20)).toBeLessThanOrEqual(FEW);
});

test("exports of large events take time slices", async () => {
  const timeSlices = new TimeSlices();
  const rows = [1, 2, 3].map((sequence) => ({ sequence }) as EventRow);
  const events = { after: (_: number, after: number) => rows.slice(after) };
  const terms = { bucketRef: 1, since: 0, until: Number.POSITIVE_INFINITY, after: 0 };
  const line = () => {
    work();
    return "x\n";
  };
  const request = () => exportPage(events, terms, line, new AbortController().signal, timeSlices);
  expect(await mostInATurn(request, 20)).toBeLessThanOrEqual(FEW);
});

test("a single request does not wait, and a used turn ends for all", async () => {
  const timeSlices = new TimeSlices();
  expect(timeSlices.isOver).toBe(false);
  work();
  expect(timeSlices.isOver).toBe(true);
  await Bun.sleep(2);
  expect(timeSlices.isOver).toBe(false);
});
