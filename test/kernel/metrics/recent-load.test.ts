import { expect, test } from "bun:test";
import { RecentLoad } from "../../../src/kernel/metrics/recent-load.ts";

const TICK_MS = 100;

/** A load whose time the test controls, with a function that advances it. */
function stage() {
  const at = { ms: 5_000, requests: 0 };
  const load = new RecentLoad(() => at.ms);
  load.requests = () => at.requests;
  const tick = (ticks: number, lateMs: (tick: number) => number, requests = 0): void => {
    for (let one = 0; one < ticks; one += 1) {
      at.ms += TICK_MS;
      at.requests += requests;
      load.tick(lateMs(one));
    }
  };
  return { at, load, tick };
}

test("the 99th percentile covers the last minute", () => {
  const { load, tick } = stage();
  expect(load.lagP99Ms).toBe(0);
  tick(1, () => 7);
  expect(load.lagP99Ms).toBe(7);
  tick(599, (one) => one / 1000);
  // Of 600 the six largest are above it, the first one among them.
  expect(load.lagP99Ms).toBeCloseTo(0.594);
  tick(600, () => 2);
  expect(load.lagP99Ms).toBe(2);
  tick(5, () => 900);
  expect(load.lagP99Ms).toBe(2);
  tick(2, () => 900);
  expect(load.lagP99Ms).toBe(900);
});

test("requests per second cover the last five seconds, also with late ticks", () => {
  const { at, load, tick } = stage();
  expect(load.requestsPerSecond).toBe(0);
  at.ms += 500;
  at.requests = 5;
  expect(load.requestsPerSecond).toBe(10);
  tick(100, () => 0, 3);
  expect(load.requestsPerSecond).toBeCloseTo(30);
  // No more values follow.
  tick(60, () => 0);
  expect(load.requestsPerSecond).toBe(0);
  at.ms += 4_000;
  at.requests += 80;
  expect(load.requestsPerSecond).toBeCloseTo(10);
});
