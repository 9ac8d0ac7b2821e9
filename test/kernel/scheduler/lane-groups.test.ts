import { expect, test } from "bun:test";
import fc from "fast-check";
import { Dispatcher, laneName, type Placed } from "../../../src/kernel/scheduler/dispatcher.ts";
import type { LaneOptions } from "../../../src/kernel/scheduler/lane-groups.ts";

/** Destinations `#n` are on host `n % 2`, and their lanes have `own` own slots. */
function limits(own: (destination: string) => number) {
  const termsOf = (destination: string): LaneOptions | null =>
    destination.startsWith("#")
      ? { group: `host${Number(destination.slice(1)) % 2}`, slots: () => own(destination) }
      : null;
  return { perLane: 4, perSlowLane: 2, slowTotal: 100, termsOf };
}

function placedOf(dispatcher: Dispatcher): Placed[] {
  const placed: Placed[] = [];
  for (let one = dispatcher.place(); one !== null; one = dispatcher.place()) placed.push(one);
  return placed;
}

const lanesOf = (placed: readonly Placed[]) => placed.map(({ lane }) => lane).sort();

test("a lane has its own limit, which a change affects from the next job on; others share the general one", () => {
  let places = 1;
  const dispatcher = new Dispatcher(
    100,
    limits(() => places),
  );
  const [own, plain] = [laneName(1, "#1"), laneName(1, "example.com")];
  for (let id = 0; id < 6; id += 1) {
    dispatcher.offer({ id, dueAt: id, lane: own });
    dispatcher.offer({ id: 10 + id, dueAt: id, lane: plain });
  }
  const first = placedOf(dispatcher);
  expect(lanesOf(first)).toEqual([own, plain, plain, plain, plain]);
  places = 3;
  const [running] = first.filter(({ lane }) => lane === own);
  if (running !== undefined) dispatcher.release(running, false);
  expect(lanesOf(placedOf(dispatcher))).toEqual([own, own, own]);
});

test("lanes of a group share its limit, oldest first; another owner's group has its own", () => {
  const dispatcher = new Dispatcher(
    100,
    limits(() => 16),
  );
  for (let lane = 0; lane < 6; lane += 1)
    for (let n = 0; n < 2; n += 1)
      dispatcher.offer({ id: 10 * lane + n, dueAt: n, lane: laneName(1, `#${2 * lane}`) });
  const first = placedOf(dispatcher);
  expect(first).toHaveLength(4);
  dispatcher.offer({ id: 100, dueAt: 1, lane: laneName(2, "#0") });
  expect(lanesOf(placedOf(dispatcher))).toEqual([laneName(2, "#0")]);
  const seen = new Set(lanesOf(first));
  let running = first;
  for (let turn = 0; turn < 12; turn += 1) {
    const [one, ...rest] = running;
    if (one === undefined) break;
    dispatcher.release(one, false);
    const next = placedOf(dispatcher);
    for (const { lane } of next) seen.add(lane);
    running = [...rest, ...next];
    expect(running.length).toBeLessThanOrEqual(4);
  }
  expect(seen.size).toBe(6);
  expect(running).toEqual([]);
});

test("for any jobs and outcomes no limit is exceeded, and every job runs", () => {
  const job = fc.record({ lane: fc.integer({ min: 0, max: 5 }), slow: fc.boolean() });
  const run = fc.property(fc.array(job, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (jobs, own) => {
    const dispatcher = new Dispatcher(
      10,
      limits(() => own),
    );
    const waiting = jobs.map(({ lane }, id) => ({ id, dueAt: id, lane: laneName(1, `#${lane}`) }));
    let running: Placed[] = [];
    const done = new Set<number>();
    for (let turn = 0; turn < 1_000 && done.size < jobs.length; turn += 1) {
      // A lane keeps some of its jobs in memory: the others are offered again, as the search in the table would.
      for (const one of waiting) {
        if (done.has(one.id) || running.some(({ id }) => id === one.id)) continue;
        dispatcher.offer(one);
        dispatcher.offerLeft(one);
      }
      dispatcher.endSearch();
      running.push(...placedOf(dispatcher));
      for (const host of [0, 1])
        expect(
          running.filter(({ lane }) => Number(lane.split("#")[1]) % 2 === host).length,
        ).toBeLessThanOrEqual(4);
      for (let lane = 0; lane < 6; lane += 1)
        expect(running.filter((one) => one.lane === laneName(1, `#${lane}`)).length).toBeLessThanOrEqual(own);
      const [first, ...rest] = running;
      if (first === undefined) continue;
      done.add(first.id);
      dispatcher.release(first, jobs[first.id]?.slow ?? false);
      running = rest;
    }
    expect(done.size).toBe(jobs.length);
  });
  fc.assert(run, { numRuns: 300 });
});
