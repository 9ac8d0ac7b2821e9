import { expect, test } from "bun:test";
import { watchEventLoop } from "../../../src/kernel/outbound/event-loop.ts";
import { until } from "../../support/eventually.ts";

/** A stall that a busy machine does not cause. */
const STALL_MS = 1_500;

test("a stall of the event loop is visible immediately and afterwards, only to affected work", async () => {
  const stalls = watchEventLoop();
  try {
    await Bun.sleep(150);
    const before = performance.now();
    expect(stalls.longestSince(before)).toBeLessThan(STALL_MS / 2);
    Bun.sleepSync(STALL_MS);
    expect(stalls.longestSince(before)).toBeGreaterThan(STALL_MS / 2);
    await Bun.sleep(150);
    expect(stalls.longestSince(before)).toBeGreaterThan(STALL_MS / 2);
    expect(stalls.longestSince(performance.now())).toBeLessThan(STALL_MS / 2);
  } finally {
    stalls.stop();
  }
});

test("ticks once a second while idle, and frequently as soon as work starts", async () => {
  const ticks: number[] = [];
  const stalls = watchEventLoop({ onTick: (_, count) => ticks.push(count), isIdle: () => true });
  try {
    await until(() => Number(ticks.at(-1)) >= 9);
    // One at first, one that stands for the rest of the second that the process shares, and one that stands for a second.
    expect(ticks[0]).toBe(1);
    expect(ticks.findIndex((count) => count >= 9)).toBeLessThanOrEqual(2);
    expect(Math.max(...ticks)).toBeLessThanOrEqual(10);
    stalls.wake();
    const before = performance.now();
    await Bun.sleep(20);
    Bun.sleepSync(STALL_MS);
    await Bun.sleep(1);
    expect(stalls.longestSince(before)).toBeGreaterThan(STALL_MS / 2);
  } finally {
    stalls.stop();
  }
});
